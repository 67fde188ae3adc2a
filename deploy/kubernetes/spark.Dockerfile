# One image with quietcorpus for the master, the workers and the launcher of a Spark cluster.
# From the repository's root, after `make spark` has built the job server:
#   docker build -f deploy/kubernetes/spark.Dockerfile -t registry.example.com/quietcorpus-spark:0.1.0 .
FROM apache/spark:3.5.7-scala2.12-java17-python3-ubuntu AS spark
FROM eclipse-temurin:17-jre AS java
FROM python:3.11-slim-bookworm

COPY --from=java /opt/java/openjdk /opt/java/openjdk
COPY --from=spark /opt/spark /opt/spark
ENV JAVA_HOME=/opt/java/openjdk SPARK_HOME=/opt/spark PATH=/opt/java/openjdk/bin:/opt/spark/bin:$PATH

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
COPY build/spark/job-server.jar /opt/quietcorpus/job-server.jar

RUN useradd --uid 10001 --create-home quietcorpus
USER 10001
WORKDIR /home/quietcorpus
