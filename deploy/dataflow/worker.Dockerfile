# The image of Dataflow workers and of the launcher: one environment for both, because a worker
# whose code differs from its launcher's is refused. Build it from the repository's root:
#   docker build -f deploy/dataflow/worker.Dockerfile --build-arg MASTER_KEY_SECRET=... -t ... .
FROM apache/beam_python3.11_sdk:2.77.0

WORKDIR /opt/quietcorpus
COPY pyproject.toml setup.py constraints.txt README.md LICENSE ./
COPY quietcorpus quietcorpus
COPY mechanisms mechanisms
COPY indexes indexes
COPY evaluation evaluation
COPY transforms transforms
COPY pipelines pipelines
# `--build-arg EXTRAS=gcp,sentences` for sentence embeddings, `gcp,training` for word embeddings.
ARG EXTRAS=gcp
RUN pip install --no-cache-dir -c constraints.txt ".[${EXTRAS}]" && pip check
# Python imports packages from the folder that it starts in: do not start it among the sources.
WORKDIR /

# The name of the master key's version in Secret Manager, not the key: the key is in no image, option
# or job. Name a version by its number; with `latest`, a new key would change the noise.
ARG MASTER_KEY_SECRET
ENV QUIETCORPUS_MASTER_KEY_SECRET=${MASTER_KEY_SECRET}

COPY deploy/dataflow/with_master_key.py /opt/quietcorpus/with_master_key.py
# Dataflow appends the harness's arguments.
ENTRYPOINT ["python", "/opt/quietcorpus/with_master_key.py", "/opt/apache/beam/boot"]
