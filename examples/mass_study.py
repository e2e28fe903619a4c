"""How fast is a heavier car? A small study without a file."""

import tempfile

import torqueloop as tl

if __name__ == "__main__":
    result = tl.sweep(
        of="wot_4hp22",
        vary={"model.components.car.m_kg": [1300, 1500, 1700], "pedal": {"low": 0.6, "high": 1.0, "steps": 2}},
        set={'scenario.inputs."engine.pedal"': [[0.0, 0.0], [0.5, 0.0], [0.7, "= pedal"]]},
        metrics={"v": {"signal": "car.v", "take": "last", "unit": "kmh"}},
        maximise="v",
        duration_s=4.0,
        out=tempfile.mkdtemp(),
        jobs=1,
    )
    print(result.frame()[["model.components.car.m_kg", "pedal", "v"]])
    print("fastest:", result.best(1)[0].line.values)
