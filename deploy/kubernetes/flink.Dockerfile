# One image with quietcorpus for the managers and the launcher of a Flink cluster.
# From the repository's root, after `make flink` has built the job server:
#   docker build -f deploy/kubernetes/flink.Dockerfile -t registry.example.com/quietcorpus-flink:0.1.0 .
FROM flink:1.19-scala_2.12-java17 AS flink
FROM eclipse-temurin:17-jre AS java
FROM python:3.11-slim-bookworm

COPY --from=java /opt/java/openjdk /opt/java/openjdk
COPY --from=flink /opt/flink /opt/flink
COPY --from=flink /docker-entrypoint.sh /docker-entrypoint.sh
ENV JAVA_HOME=/opt/java/openjdk FLINK_HOME=/opt/flink PATH=/opt/java/openjdk/bin:/opt/flink/bin:$PATH

# What the entry point calls, as Flink's own image has it.
RUN apt-get update \
  && apt-get install -y --no-install-recommends gettext-base libjemalloc-dev \
  && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/quietcorpus
COPY pyproject.toml setup.py constraints.txt README.md LICENSE ./
COPY quietcorpus quietcorpus
COPY mechanisms mechanisms
COPY indexes indexes
COPY evaluation evaluation
COPY transforms transforms
COPY pipelines pipelines
# `--build-arg EXTRAS=aws,sentences` for sentence embeddings, `aws,training` for word embeddings.
ARG EXTRAS=aws
RUN pip install --no-cache-dir -c constraints.txt ".[${EXTRAS}]"
COPY build/flink/job-server.jar /opt/quietcorpus/job-server.jar

RUN useradd --uid 10001 --create-home quietcorpus && chown -R 10001 /opt/flink
USER 10001
WORKDIR /home/quietcorpus
ENTRYPOINT ["/docker-entrypoint.sh"]
