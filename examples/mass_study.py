"""How fast is a heavier car? A small study without a file."""

import tempfile

import torqueloop as tl

if __name__ == "__main__":
    study = {
        "study": {"of": "wot_4hp22", "duration_s": 4.0},
        "vary": {"model.components.car.m_kg": [1300, 1500, 1700], "pedal": {"low": 0.6, "high": 1.0, "steps": 2}},
        "set": {'scenario.inputs."engine.pedal"': [[0.0, 0.0], [0.5, 0.0], [0.7, "= pedal"]]},
        "metrics": {"v": {"signal": "car.v", "take": "last", "unit": "kmh"}},
        "objective": {"maximise": "v"},
    }
    result = tl.sweep(study, out=tempfile.mkdtemp(), jobs=1)
    print(result.frame()[["model.components.car.m_kg", "pedal", "v"]])
    print("fastest:", result.best(1)[0].line.values)
