#!/usr/bin/env bash
# A standalone Flink cluster on this machine's loopback: a job manager, two task managers of one slot.
#
#   deploy/flink/cluster.sh up      start it; task managers inherit this shell's environment
#   deploy/flink/cluster.sh down    stop what `up` started, and delete what jobs left but logs
#
# FLINK_LIB names a Flink's jars (PyPI's apache-flink-libraries has them in pyflink/lib), CLUSTER
# the folder for logs and process ids, and PORT the port to which jobs go. JOB_SERVER names the job
# server's jar: Python workers stay from one stage to the next only if Flink itself has its classes.
set -euo pipefail

: "${FLINK_LIB:?names no jars of Flink}" "${JOB_SERVER:?names no jar}"
: "${CLUSTER:=build/flink/cluster}" "${PORT:=8081}"
: "${WORKERS:=2}"
mkdir -p "$CLUSTER"
CLUSTER=$(cd "$CLUSTER" && pwd)

opens=()
for package in java.lang java.lang.reflect java.io java.net java.nio java.text java.time java.util \
    java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks sun.nio.ch; do
    opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done

start() { # name, heap, class, settings
    local name=$1 heap=$2
    shift 2
    background "$name" java "-Xmx$heap" "-Dlog4j.configurationFile=file:$CLUSTER/log4j.properties" \
        "${opens[@]}" -cp "$FLINK_LIB/*:$JOB_SERVER" "$@"
}

configure() {
    cat > "$CLUSTER/log4j.properties" << END
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.name = console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1} %m%n
END
    cat > "$CLUSTER/flink-conf.yaml" << END
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: $((PORT + 1000))
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: 1g
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: $PORT
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: 1
taskmanager.cpu.cores: 1
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.task.heap.size: 512m
taskmanager.memory.task.off-heap.size: 128m
taskmanager.memory.managed.size: 128m
taskmanager.memory.network.min: 192m
taskmanager.memory.network.max: 192m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 192m
taskmanager.memory.jvm-overhead.max: 192m
# A failed task is retried, as on Spark. Noise is keyed, so a retry draws the same.
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 4
restart-strategy.fixed-delay.delay: 5 s
# The job server's classes are Flink's own here, and not those that each job brings anew.
classloader.resolve-order: parent-first
io.tmp.dirs: $CLUSTER/tmp
END
    mkdir -p "$CLUSTER/tmp"
}

registered() {
    python3 -c 'import json, sys, urllib.request as u
print(json.load(u.urlopen(f"http://127.0.0.1:{sys.argv[1]}/overview"))["taskmanagers"])' "$PORT" 2> /dev/null || echo 0
}

tidy() { rm -rf "$CLUSTER/tmp"; }

up() {
    refuse_taken_port
    configure
    start jobmanager 600m org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint \
        --configDir "$CLUSTER"
    for number in $(seq "$WORKERS"); do
        start "taskmanager-$number" 640m org.apache.flink.runtime.taskexecutor.TaskManagerRunner \
            --configDir "$CLUSTER" -D "taskmanager.resource-id=taskmanager-$number"
    done
    await_workers "task managers" \
        "127.0.0.1:$PORT is up with $WORKERS task managers; pages at http://127.0.0.1:$PORT"
}

. "$(dirname "$0")/../local_cluster.sh"
