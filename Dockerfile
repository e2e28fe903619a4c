# A rig in a container: docker build -t torqueloop . && docker run --rm torqueloop
# With a control unit in a second container over a virtual CAN bus of the host: compose.yaml.
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:3.13-slim
RUN apt-get update && apt-get install --yes --no-install-recommends iproute2 && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN for wheel in /wheels/torqueloop-*.whl; do pip install --no-cache-dir "$wheel[report]"; done && rm -r /wheels
WORKDIR /runs
ENTRYPOINT ["torqueloop"]
CMD ["run", "desk_4hp22", "--clock", "virtual"]
