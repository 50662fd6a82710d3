#!/usr/bin/env bash
# A clustered broker: three nodes of nats-server with TLS and the access list of `hfsad keys`, each killed with -9 and
# started again during a federation whose members are spread over them: the bytes of `hfsad run`. Skipped (77) without
# nats-server.
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
. "$tests/cluster.sh"

# ---- what is refused, before anything is written ----

expect_line 2 keys init --for nats --host a --host b --dir two
says 'two cannot agree once one is gone'
expect_line 2 keys init --for kafka --dir other
says "unknown broker 'kafka'; known: mosquitto, nats, rabbitmq"
[ ! -e two ] && [ ! -e other ] || fail "a refused init left a folder"
expect 0 generate quantile --edges 2 --clients 2 --features 4 --rows 12 --quiet --out data
cd data || exit 1
expect 0 nodes spec.yaml
mv stdout.txt nodes.txt
expect 0 keys init --for nats --host b1 --host b2 --host 10.0.0.3 --dir far
expect 0 keys issue --nodes nodes.txt --dir far
sed '$a federation: {name: a.b}' spec.yaml >dotted.yaml
expect_line 2 keys broker dotted.yaml --out dotted --dir far
says "'a.b' cannot be a name at a NATS broker"
expect 0 keys broker spec.yaml --out there --at /srv/broker --dir far
[ "$(names there)" = "broker.crt broker.key ca.crt nats-1.conf nats-2.conf nats-3.conf revoked.crl users.conf " ] || fail "the folder has $(names there)"
[ -z "$(find there -type f ! -perm 600)" ] || fail "the broker's files are open to others"
grep -q 'nats-route://hfsad:[0-9a-f]\{64\}@10.0.0.3:8884"' there/nats-1.conf && grep -q 'listen: "0.0.0.0:8883"' there/nats-2.conf || fail "nodes of the cluster"
grep -q '"/srv/broker/broker.key"' there/nats-3.conf || fail "paths on the broker's machine"
expect 0 keys revoke edge2/client3 --dir far
expect 0 keys broker spec.yaml --out there --dir far
grep -q 'CN=edge2/client3"' there/users.conf && fail "a revoked node is let in"
grep -q 'CN=edge2/client4"' there/users.conf || fail "a node is missing"

command -v nats-server >/dev/null || {
    [ "$failures" = 0 ] || finish
    echo "skipped: no nats-server"
    exit 77
}

# ---- three nodes on this machine ----

nodes=(0 0 0 0)
start_node() {
    setpriv --pdeathsig KILL nats-server -c broker/nats-"$1".conf >>"node-$1.log" 2>&1 &
    nodes[$1]=$!
    members="$members $!"
}
node_answers() { (exec 3<>"/dev/tcp/127.0.0.1/$((port + 10 * $1 - 10))"); }
cluster_stands() {
    local i
    for i in 1 2 3; do node_answers $i || return 1; done
    grep -qh 'new metadata leader' node-?.log
}
for attempt in 1 2 3; do
    port=$((20000 + (RANDOM * 7 + $$ + attempt) % 12000))
    rm -rf broker keys node-?.log
    expect 0 keys init --for nats --port $port
    expect 0 keys issue --nodes nodes.txt
    expect 0 keys broker spec.yaml --out broker
    for i in 1 2 3; do start_node $i; done
    until_true 60 cluster_stands && break
    kill -KILL "${nodes[@]:1}" 2>/dev/null
done
cluster_stands || { fail "the cluster does not stand: $(cat node-?.log)"; finish; }

# ---- the access list, asked by a stranger ----

own=hfsad/run/edge1/client1/up
hears() { as edge1 sub "$1" -C 1 -W 20 -t 'hfsad/run/edge1/+/up'; }
until_true 60 as edge1/client1 pub 1 -r -t $own -m good || fail "a client cannot write its own topic"
good() { [ "$(hears 3)" = good ]; }
until_true 60 good || fail "an edge at another node of the cluster does not hear its client"
as edge1/client2 pub 2 -r -t $own -m forged
as edge2 pub 2 -r -t $own -m forged
as cloud pub 3 -r -t $own -m forged
as edge1 pub 2 -r -t hfsad/run/edge1/down -m w
[ "$(hears 2)" = good ] || fail "somebody has written in the name of a client"
[ "$(as edge1/client2 sub 1 -C 1 -W 20 -t hfsad/run/edge1/down)" = w ] || fail "a client does not hear its edge"
for topic in $own 'hfsad/run/edge1/+/up' 'hfsad/#' hfsad/run/cloud/down; do
    as edge1/client2 sub 1 -C 1 -W 2 -t "$topic" | grep -q . && fail "a client reads $topic"
done
mosquitto_pub -V 311 -h localhost -p $port --cafile keys/ca.crt -u CN=cloud -t hfsad/run/cloud/down -m x 2>>clients.log && fail "no certificate is needed"

# ---- a federation while each node is killed and comes back ----

# the node names the leader, or itself: "Self is new JetStream cluster metadata leader"
follows() { tail -n +$(($2 + 1)) "node-$1.log" | grep -q 'new .*metadata leader'; }
chaos 60 'protocol version of 5'
finish
