#!/usr/bin/env bash
# A standalone Spark cluster on this machine's loopback: one master, two workers of one core each.
#
#   deploy/spark/cluster.sh up      start it; workers inherit this shell's environment
#   deploy/spark/cluster.sh down    stop what `up` started
#
# SPARK_HOME names a Spark 3.5 (PyPI's pyspark is one), CLUSTER the folder for logs, process ids
# and the workers' files, PORT the master's port and UI_PORT its web page's (the workers' are 11 and more above).
set -euo pipefail

: "${SPARK_HOME:?names no Spark}" "${CLUSTER:=build/spark/cluster}" "${PORT:=7077}" "${UI_PORT:=8080}"
: "${WORKERS:=2}" "${WORKER_MEMORY:=1g}"
export SPARK_HOME SPARK_LOCAL_IP=127.0.0.1 SPARK_LOCAL_DIRS="$CLUSTER/local"
export SPARK_WORKER_DIR="$CLUSTER/work"

start() { # name, class, arguments
    local name=$1
    shift
    nohup "$SPARK_HOME/bin/spark-class" "$@" > "$CLUSTER/$name.log" 2>&1 < /dev/null &
    echo $! > "$CLUSTER/$name.pid"
}

answers() { (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

case "${1:-}" in
up)
    mkdir -p "$CLUSTER"
    ! answers "$PORT" || { echo "cluster.sh: port $PORT is taken" >&2; exit 1; }
    start master org.apache.spark.deploy.master.Master \
        --host 127.0.0.1 --port "$PORT" --webui-port "$UI_PORT"
    for number in $(seq "$WORKERS"); do
        start "worker-$number" org.apache.spark.deploy.worker.Worker "spark://127.0.0.1:$PORT" \
            --host 127.0.0.1 --cores 1 --memory "$WORKER_MEMORY" --webui-port $((UI_PORT + 10 + number))
    done
    for _ in $(seq 120); do
        registered=$(cat "$CLUSTER"/worker-*.log | grep -c "Successfully registered" || true)
        if [ "$registered" -ge "$WORKERS" ]; then
            echo "spark://127.0.0.1:$PORT is up with $WORKERS workers; page at http://127.0.0.1:$UI_PORT"
            exit 0
        fi
        sleep 0.5
    done
    echo "cluster.sh: the workers did not come up; see $CLUSTER/*.log" >&2
    exit 1
    ;;
down)
    for file in "$CLUSTER"/*.pid; do
        [ -e "$file" ] || continue
        kill "$(cat "$file")" 2> /dev/null || true
        rm "$file"
    done
    ;;
*)
    sed -n '2,8p' "$0" >&2
    exit 2
    ;;
esac
