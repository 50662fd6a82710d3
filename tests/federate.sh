# A federation of spec.yaml with one edge, e, its messages recorded, its processes killed on the way. Needs shell.sh, broker.sh and a broker.
# begin LOG ARGUMENTS…: a process of the federation; its number is in $last.
begin() {
    setpriv --pdeathsig KILL "$HFSAD" "${@:2}" --broker "mqtt://127.0.0.1:$port" 2>>"$1" >&2 </dev/null &
    last=$!
    members="$members $last"
}
begin_one() { begin "$name.log" "$1" spec.yaml "${sets[@]}" --state "state-$name/$1" "${@:2}"; }
# has_frames NUMBER: whether the transcript of $name has more.
has_frames() { [ "$(wc -l <"$name.txt")" -gt "$1" ]; }
# federate NAME KILLS SETTING…: the spec with these settings; what goes over the broker is in NAME.txt, the output in NAME. The clients
# and the edge are killed in turn, KILLS times, each time after $gap frames more (10).
federate() {
    local name=$1 kills=$2 sets=(--set "federation.name=$1") i cloud edge clients seen status done=0
    for i in "${@:3}"; do sets+=(--set "$i"); done
    setpriv --pdeathsig KILL mosquitto_sub -p "$port" -t "hfsad/$name/#" -F '%t %x' >"$name.txt" 2>/dev/null &
    members="$members $!"
    mkdir -p "state-$name"
    begin_one cloud --out "$name" --linger 0.5 --quiet
    cloud=$last
    begin_one edge --name e --linger 0.5
    edge=$last
    begin_one client --all-of e --out "own-$name" --audit "$name.audit"
    clients=$last
    for ((i = 0; i < kills; i++)); do
        seen=$(wc -l <"$name.txt")
        until_true 20 has_frames $((seen + ${gap:-10})) || break
        kill -0 "$cloud" 2>/dev/null || break
        if [ $((i % 3)) = 2 ]; then
            kill -KILL "$edge"
            wait "$edge" 2>/dev/null
            begin_one edge --name e --linger 0.5
            edge=$last
        else
            kill -KILL "$clients"
            wait "$clients" 2>/dev/null
            begin_one client --all-of e --out "own-$name" --audit "$name.audit"
            clients=$last
        fi
        done=$((done + 1))
    done
    wait "$cloud"
    status=$?
    [ "$status" = 0 ] || { fail "$name: exit status $status"; tail -5 "$name.log" >&2; }
    until_true 20 grep -q "hfsad/$name/cloud/answer-ack" "$name.txt" || fail "$name: no end in the transcript"
    [ "$done" -ge "$kills" ] || fail "$name: only $done kills"
}
