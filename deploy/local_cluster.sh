# shellcheck shell=bash
# Shared by spark/cluster.sh and flink/cluster.sh, which source it with CLUSTER, PORT and WORKERS set, and
# with `registered`, which counts the workers that are up, and `tidy`, which deletes what their jobs left.

background() { # name, command...: run it, with a log and its process id in the cluster's folder
    local name=$1
    shift
    nohup "$@" > "$CLUSTER/$name.log" 2>&1 < /dev/null &
    echo $! > "$CLUSTER/$name.pid"
}

refuse_taken_port() {
    ! (: < "/dev/tcp/127.0.0.1/$PORT") 2> /dev/null || { echo "cluster.sh: port $PORT is taken" >&2; exit 1; }
}

await_workers() { # what they are called, what to say once all of them are there
    for _ in $(seq 120); do
        if [ "$(registered)" -ge "$WORKERS" ]; then
            echo "$2"
            return
        fi
        sleep 0.5
    done
    echo "cluster.sh: the $1 did not come up; see $CLUSTER/*.log" >&2
    exit 1
}

down() {
    for file in "$CLUSTER"/*.pid; do
        [ ! -e "$file" ] || kill "$(cat "$file")" 2> /dev/null || true
    done
    for file in "$CLUSTER"/*.pid; do
        [ -e "$file" ] || continue
        for _ in $(seq 100); do
            kill -0 "$(cat "$file")" 2> /dev/null || break
            sleep 0.1
        done
        rm "$file"
    done
    tidy
}

case "${1:-}" in
up | down) "$1" ;;
*)
    sed -n '2,/^set/s/^#/#/p' "$0" >&2
    exit 2
    ;;
esac
