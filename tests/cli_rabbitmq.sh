#!/usr/bin/env bash
# The same with three nodes of RabbitMQ (cli_cluster.sh: nats-server): their files, the access list, and a federation
# whose nodes of the cluster are killed. Skipped (77) without rabbitmq-server, which is not installed for `make check`:
# it takes two minutes.
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
. "$tests/cluster.sh"

# ---- files ----

expect 0 generate quantile --edges 2 --clients 2 --features 4 --rows 12 --quiet --out data
cd data || exit 1
expect 0 nodes spec.yaml
mv stdout.txt nodes.txt
expect_line 2 keys init --for rabbitmq --host b1 --host b2.example.org --host b3 --dir mixed
says '1 of 3 hosts have a dot'
expect_line 2 keys init --for rabbitmq --host b1 --host b2 --host 10.0.0.3 --dir mixed
says '10.0.0.3 is an address'
[ ! -e mixed ] || fail "a refused init left a folder"
expect 0 keys init --for rabbitmq --host b1.example.org --host b2.example.org --host b3.example.org --dir far
expect 0 keys issue --nodes nodes.txt --dir far
expect_line 2 keys broker spec.yaml --out there --at '/srv/the broker' --dir far
says 'spaces cannot be in the path'
expect 0 keys broker spec.yaml --out there --at /srv/broker --dir far
[ "$(names there)" = "broker.crt broker.key ca.crt definitions.json enabled_plugins inter_node_tls.config rabbitmq-1.conf rabbitmq-1.env rabbitmq-2.conf rabbitmq-2.env rabbitmq-3.conf rabbitmq-3.env revoked.crl " ] || fail "the folder has $(names there)"
[ -z "$(find there -type f ! -perm 600)" ] || fail "the broker's files are open to others"
grep -q '^NODENAME=hfsad-3@b3.example.org$' there/rabbitmq-3.env && grep -q '^USE_LONGNAME=true$' there/rabbitmq-3.env || fail "the name of a node"
expect 0 keys revoke edge2/client3 --dir far
expect 0 keys broker spec.yaml --out there --dir far
python3 - there/definitions.json <<'END' || fail "the access list"
import json, re, sys
d = json.load(open(sys.argv[1]))
users = [u["name"] for u in d["users"]]
assert users == ["observer", "cloud", "edge1", "edge2", "edge1/client1", "edge1/client2", "edge2/client4"], users
assert [p["user"] for p in d["permissions"]] == users and not any(u["password_hash"] for u in d["users"])
topics = {t["user"]: t for t in d["topic_permissions"]}
queues = {p["user"]: p for p in d["permissions"]}
def may(user, way, key):
    return bool(re.search(topics[user][way], key))
for user, way, key, allowed in [
    ("edge1/client1", "write", "hfsad.run.edge1.client1.up", True), ("edge1/client1", "write", "hfsad.run.edge1.client2.up", False),
    ("edge1/client1", "write", "hfsad.run.edge1.client1.up.x", False), ("edge1/client1", "write", "hfsad.run.edge1.down", False),
    ("edge1", "write", "hfsad.run.edge1.down", True), ("edge1", "write", "hfsad.run.edge1.client1.up", False),
    ("edge1/client1", "read", "hfsad.run.edge1.down", True), ("edge1/client1", "read", "hfsad.run.edge2.down", False),
    ("edge1/client1", "read", "hfsad.run.edge1.client2.status", False), ("edge1/client1", "read", "hfsad.run.edge1.*.up", False),
    ("edge1", "read", "hfsad.run.edge1.*.up", True), ("edge1", "read", "hfsad.run.edge1.client1.up", False),
    ("edge1", "read", "hfsad.run.*.up", False), ("cloud", "read", "hfsad.run.*.up", True), ("cloud", "read", "hfsad.run.*.*.up", False),
    ("cloud", "read", "hfsad.#", False), ("observer", "read", "hfsad.run.*.*.status", True), ("observer", "read", "hfsad.run.*.*.up", False),
    ("observer", "write", "hfsad.run.cloud.status", False),
]:
    assert may(user, way, key) == allowed, (user, way, key)
assert re.search(queues["edge1"]["read"], "mqtt-subscription-edge1@0123456789abcdefqos0")
assert not re.search(queues["edge1"]["read"], "mqtt-subscription-edge2@0123456789abcdefqos0")
assert not re.search(queues["observer"]["write"], "amq.topic")
END

server=/usr/lib/rabbitmq/bin/rabbitmq-server # the one in the path becomes another user
[ -x $server ] && command -v epmd >/dev/null || {
    [ "$failures" = 0 ] || finish
    echo "skipped: no rabbitmq-server"
    exit 77
}

# ---- three nodes on this machine ----

export HOME=$PWD ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT
nodes=(0 0 0 0)
node_answers() { (exec 3<>"/dev/tcp/127.0.0.1/$((port + 10 * $1 - 10))"); }
# The script is the parent of the virtual machine, which outlives it.
start_node() {
    RABBITMQ_CONF_ENV_FILE=broker/rabbitmq-$1.env setpriv --pdeathsig KILL $server >>"node-$1.log" 2>&1 &
    local script=$! status=0
    until_true 150 node_answers "$1" || status=1
    nodes[$1]=$(pgrep -P $script beam)
    members="$members $script ${nodes[$1]}"
    return $status
}
# One after the other: a node that joins while the first one still loads the definitions would miss them.
cluster_stands() {
    local i
    for i in 1 2 3; do
        start_node $i || return 1
    done
}
for attempt in 1 2 3; do
    port=$((20000 + (RANDOM * 7 + $$ + attempt) % 12000))
    ERL_EPMD_PORT=$((port + 5))
    rm -rf broker keys node-?.log
    setpriv --pdeathsig KILL epmd >epmd.log 2>&1 &
    members="$members $!"
    expect 0 keys init --for rabbitmq --port $port
    expect 0 keys issue --nodes nodes.txt
    expect 0 keys broker spec.yaml --out broker
    stands=yes
    cluster_stands && break
    stands=
    kill -KILL "${nodes[@]:1}" 2>/dev/null
done
[ -n "$stands" ] || { fail "the cluster does not stand: $(tail -n 5 node-?.log)"; finish; }

# ---- the access list, asked by a stranger ----

# heard NODE BROKER TOPIC AFTER…: what the node hears of the topic once the command has run.
heard() {
    as "$1" sub "$2" -i "$1@0123456789abcdef" -q 1 -d -C 1 -W 30 -t "$3" >heard.txt &
    local reader=$!
    until_true 20 grep -q 'received SUBACK\|Subscribed' heard.txt || true
    "${@:4}"
    wait $reader
    grep -v '^Client\|^Subscribed' heard.txt
}
own=hfsad/run/edge1/client1/up
says_good() { as edge1/client1 pub 1 -q 1 -t $own -m good; }
[ "$(heard edge1 3 'hfsad/run/edge1/+/up' says_good)" = good ] || fail "an edge at another node of the cluster does not hear its client"
forge() {
    as edge1/client2 pub 2 -q 1 -t $own -m forged
    as edge2 pub 2 -q 1 -t $own -m forged
    as cloud pub 3 -q 1 -t $own -m forged
    says_good
}
[ "$(heard edge1 2 'hfsad/run/edge1/+/up' forge)" = good ] || fail "somebody has written in the name of a client"
as edge1 sub 1 -i edge2@0123456789abcdef -q 1 -C 1 -W 3 -t hfsad/run/edge1/status && fail "a session of another node's name"
mosquitto_pub -V 311 -h localhost -p $port --cafile keys/ca.crt -u cloud -t hfsad/run/cloud/down -m x 2>>clients.log && fail "no certificate is needed"

# ---- a federation while each node is killed and comes back ----

follows() { return 0; } # it answers once it has joined
chaos 120 .
finish
