#!/usr/bin/env bash
# hfsad keys: what it writes, and what a real mosquitto makes of it, asked by clients that are not ours. Needs HFSAD.
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"

# ---- what it writes ----

expect 0 keys init
expect 0 keys issue cloud observer --dir keys
[ ! -s stderr.txt ] || fail "nothing has changed for the broker: $(cat stderr.txt)"
rm keys/nodes/cloud.* keys/nodes/observer.*
# what a running broker must read again is said, and only then
reloads() { says 'SIGHUP'; [ "$(wc -l <stderr.txt)" = 1 ] || fail "not one line: $(cat stderr.txt)"; }
expect 0 keys issue cloud edge1 edge2 edge1/client7 edge1/client8
reloads
[ "$(wc -l <stdout.txt)" = 5 ] && grep -q '^keys/nodes/edge1/client7.crt keys/nodes/edge1/client7.key$' stdout.txt || fail "names of files: $(cat stdout.txt)"
[ "$(stat -c %a keys keys/nodes keys/nodes/edge1 | tr '\n' ' ')" = "700 700 700 " ] || fail "folders are open to others"
find keys -name '*.key' ! -perm 600 | grep -q . && fail "a private key is open to others"
[ "$(find keys -name '*.key' | wc -l)" = 7 ] || fail "not one private key each"
[ -z "$(find keys -name '*~')" ] || fail "something is left behind"
openssl verify -CAfile keys/ca.crt -purpose sslserver keys/broker.crt >/dev/null || fail "the broker's certificate"
openssl verify -CAfile keys/ca.crt -purpose sslclient keys/nodes/edge1/client7.crt >/dev/null || fail "a node's certificate"
openssl verify -CAfile keys/ca.crt -purpose sslserver keys/nodes/edge1.crt >/dev/null 2>&1 && fail "a node can pose as the broker"
openssl x509 -in keys/nodes/edge1/client7.crt -noout -subject -nameopt multiline | grep -q '= edge1/client7$' || fail "common name"
openssl x509 -in keys/nodes/edge1.crt -noout -checkend $((364 * 86400)) >/dev/null || fail "not a year"
openssl x509 -in keys/nodes/edge1.crt -noout -checkend $((366 * 86400)) >/dev/null && fail "more than a year"

# Nothing is replaced unasked, nothing changes where something is refused.
sums() { find keys -type f -exec sha256sum {} + | sort; }
before=$(sums)
expect_line 2 keys init
says 'ca.key already exists and is not to be replaced (--force)'
expect_line 2 keys issue edge9 edge1
says 'edge1.key already exists and is not to be replaced (--force)'
for bad in '' /a a/ a//b 'a/+' '#' ../a a/../b .a ' a' "$(printf 'x%.0s' {1..65})"; do
    expect_line 2 keys issue "$bad"
done
says 'at most 64'
expect_line 2 keys issue edge3 edge3
says 'twice'
expect_line 2 keys issue
expect_line 2 keys isue edge3
says 'did you mean issue?'
expect_line 2 keys init extra
expect_line 2 keys issue edge3 --host a
expect_line 2 keys issue edge3 --days 0
expect_line 2 keys issue edge3 --dir nowhere
says 'nowhere/ca.crt cannot be read.*hfsad keys init'
expect_line 2 keys revoke edge1 edge1/clent7
says 'there is no keys/nodes/edge1/clent7.crt; did you mean edge1/client7?'
expect_line 2 keys revoke nobody
says 'there is no keys/nodes/nobody.crt; there are: cloud, edge1, edge1/client7, edge1/client8, edge2'
expect_line 2 keys revoke edge1 --dir nowhere
says 'nowhere/ca.crt cannot be read.*hfsad keys init'
expect_line 2 keys init --dir none --host 'a,DNS:b'
says "not a host name or address"
[ ! -e none ] || fail "a refused init left a folder"
[ "$(sums)" = "$before" ] || fail "a refusal has changed something"
serial() { openssl x509 -in keys/nodes/edge1.crt -noout -serial | cut -d= -f2; }
revoked() { openssl crl -in keys/revoked.crl -noout -text | sed -n 's/ *Serial Number: *//p' | sort; }
[ -z "$(revoked)" ] || fail "revoked before anything was: $(revoked)"
replaced=$(serial)
expect 0 keys issue edge1 edge9 --force --days 2
reloads
[ "$(revoked)" = "$replaced" ] || fail "issue --force does not revoke the certificate that it replaces: $(revoked)"
replaced=$(printf '%s\n' "$replaced" "$(serial)" | sort)
expect 0 keys issue edge1 --force
reloads
[ "$(revoked)" = "$replaced" ] || fail "issue --force, twice: $(revoked)"
cp -r keys again
expect 0 keys init --dir again --force
expect 0 keys issue edge1 --dir again --force # of another authority, which nobody trusts any more
openssl crl -in again/revoked.crl -noout -text | grep -q 'Serial Number' && fail "another authority's certificate is revoked"
rm -r again
lines=$(grep -c . keys/acl)
expect 0 keys issue edge1 --force --days 2
[ "$(grep -c . keys/acl)" = "$lines" ] || fail "a node is in the access list twice"
expect 0 keys init --dir far --host broker.example.org --host 10.0.0.1
openssl x509 -in far/broker.crt -noout -ext subjectAltName | grep -q 'DNS:broker.example.org.*IP Address:10.0.0.1' || fail "hosts"
grep -q '^listener 8883$' far/mosquitto.conf || fail "a broker for others listens on loopback only"
grep -q '^listener 8883 127.0.0.1$' keys/mosquitto.conf || fail "a broker for this machine listens to others"

# ---- what a broker makes of it ----

# The largest frame fits, with the longest topic, and what does not is noticed by who sends it.
limit=$(sed -n 's/^max_packet_size //p' keys/mosquitto.conf)
[ "$limit" -ge $((60 + 8 * 16777216 + 1023 + 8)) ] && [ "$limit" -le 268435455 ] || fail "the largest packet: '$limit'"
grep -q '^message_size_limit' keys/mosquitto.conf && fail "a message may be dropped without a word"
expect 0 generate quantile --edges 1 --clients 2 --features 3 --rows 9 --out data --quiet
sed 's/^max_packet_size .*/max_packet_size 500/' keys/mosquitto.conf >narrow.conf
start_broker narrow.conf
expect_line 2 cloud data/spec.yaml --keys keys --broker mqtts://localhost:$port --quiet
says 'a message of [0-9]* bytes exceeds the limit of the broker at .*; raise the limit (mosquitto: max_packet_size'

start_broker keys/mosquitto.conf

# as NODE pub|sub ARGUMENTS…: by a certificate of keys/, or of the folder $keys, or the files $cert.crt and $cert.key.
keys=keys cert='' ca=keys/ca.crt
as() {
    local node=$1 program=mosquitto_$2
    shift 2
    local file=${cert:-$keys/nodes/$node}
    "$program" -V 5 -h localhost -p "$port" --cafile "$ca" --cert "$file.crt" --key "$file.key" "$@" 2>>clients.log
}
publish() { as "$1" pub -q 1 -r -t "$2" -m "$3"; }
# read_first NODE TOPIC…: topic and text of the first retained value that comes, of the topics in this order.
read_first() {
    local node=$1 topics=() topic
    shift
    for topic in "$@"; do topics+=(-t "$topic"); done
    as "$node" sub -C 1 -W 10 -v "${topics[@]}"
}

own=hfsad/r/edge1/client7/up
publish edge1/client7 "$own" good || fail "a client cannot write its own topic"
[ "$(read_first edge1 "$own")" = "$own good" ] || fail "an edge does not hear its client"
[ "$(read_first edge1 'hfsad/r/edge1/+/up')" = "$own good" ] || fail "an edge does not hear its clients"
publish edge1 hfsad/r/edge1/down w || fail "an edge cannot speak to its clients"
[ "$(read_first edge1/client7 hfsad/r/edge1/down)" = 'hfsad/r/edge1/down w' ] || fail "a client does not hear its edge"
publish edge1 hfsad/r/edge1/up u && [ "$(read_first cloud 'hfsad/r/+/up')" = 'hfsad/r/edge1/up u' ] || fail "the cloud does not hear an edge"
publish cloud hfsad/r/cloud/down w0 && [ "$(read_first edge2 hfsad/r/cloud/down)" = 'hfsad/r/cloud/down w0' ] || fail "an edge does not hear the cloud"
publish edge1/client8 hfsad/r/edge1/client8/status live || fail "a client cannot write its status"
publish edge2 hfsad/r/edge2/status live || fail "an edge cannot write its status"

# Nobody writes on another's topic.
for node in edge1/client8 edge1 edge2 cloud; do
    publish "$node" "$own" forged
    [ "$(read_first edge1 "$own")" = "$own good" ] || fail "$node has written in the name of edge1/client7"
done
publish edge1/client7 hfsad/r/edge1/down forged
publish edge1/client7 hfsad/r/cloud/down forged
publish edge2 hfsad/r/edge1/down forged
[ "$(read_first edge1/client7 hfsad/r/edge1/down)" = 'hfsad/r/edge1/down w' ] || fail "somebody has written in the name of edge1"
[ "$(read_first edge1 hfsad/r/cloud/down)" = 'hfsad/r/cloud/down w0' ] || fail "somebody has written in the name of the cloud"

# Nobody reads another's: what one may read is asked for last and comes first.
mine=hfsad/r/edge1/client8/status
for topic in "$own" hfsad/r/edge1/client7/+ hfsad/r/edge1/up hfsad/r/cloud/down 'hfsad/+/+/up' 'hfsad/+/edge1/+/up'; do
    [ "$(read_first edge1/client8 "$topic" "$mine")" = "$mine live" ] || fail "a client reads $topic"
done
[ "$(read_first edge2 "$own" hfsad/r/edge1/down hfsad/r/edge1/up hfsad/r/edge2/status)" = 'hfsad/r/edge2/status live' ] || fail "an edge reads another's"
# With # a client gets its own and its edge's, and nothing else; then its own again, which closes it.
as edge1/client8 sub -C 3 -W 10 -v -t '#' -t "$mine" | sort >all.txt
printf '%s\n' 'hfsad/r/edge1/client8/status live' 'hfsad/r/edge1/client8/status live' 'hfsad/r/edge1/down w' | cmp - all.txt || fail "a client reads $(cat all.txt)"

# Who looks on sees the status of all, and nothing else.
expect 0 keys issue observer edge1/late
kill -HUP "$broker"
[ "$(read_first observer "$own" hfsad/r/edge1/down 'hfsad/+/+/+/status')" = "$mine live" ] || fail "the observer"
as edge1/late sub -C 1 -W 10 -t hfsad/r/edge1/down | grep -q '^w$' || fail "a node that was added is not known after SIGHUP"

# ---- who does not get in ----

refused() {
    publish edge1/client7 "$own" intruder && fail "$1 gets in"
    cert='' keys=keys ca=keys/ca.crt
    [ "$(read_first edge1 "$own")" = "$own good" ] || fail "$1 has an effect"
}
"$HFSAD" keys init --dir foreign >/dev/null && "$HFSAD" keys issue --dir foreign edge1/client7 >/dev/null || fail "a second authority"
keys=foreign
refused "a certificate of another authority"
keys=foreign ca=foreign/ca.crt
refused "one who trusts another authority"
ca=foreign/ca.crt
refused "a node that does not know the broker's authority"

# An expired certificate of the right authority.
mkdir authority && touch authority/index && echo 01 >authority/serial
printf '%s\n' '[ca]' 'default_ca=a' '[a]' 'database=authority/index' 'serial=authority/serial' 'new_certs_dir=authority' \
    'default_md=sha256' 'policy=p' 'unique_subject=no' '[p]' 'commonName=supplied' >authority/conf
openssl req -new -key keys/nodes/edge1/client7.key -subj '/CN=edge1\/client7' -out authority/request 2>/dev/null
sign() {
    openssl ca -batch -notext -config authority/conf -cert keys/ca.crt -keyfile keys/ca.key -in authority/request \
        -startdate "$1" -enddate "$2" -out made.crt >/dev/null 2>&1 || fail "openssl ca"
}
cp keys/nodes/edge1/client7.key made.key
sign 20200101000000Z 20401231000000Z
cert=made
publish edge1/client7 "$own" good || fail "a certificate made by openssl does not do: the next test means nothing"
sign 20200101000000Z 20200201000000Z
refused "an expired certificate"
cert=made
sign 20400101000000Z 20401231000000Z
cert=made
refused "a certificate of the future"
mosquitto_pub -h localhost -p "$port" --cafile keys/ca.crt -t "$own" -m x -r -q 1 2>>clients.log && fail "no certificate is needed"
mosquitto_pub -h localhost -p "$port" -t "$own" -m x -r -q 1 2>>clients.log && fail "no TLS is needed"
refused_last=$(read_first edge1 "$own")
[ "$refused_last" = "$own good" ] || fail "without a certificate: $refused_last"

# ---- the folder of a broker: exact topics, limits by the tree, no key of the authority ----

expect 0 generate quantile --edges 1 --clients 2 --features 3 --rows 9 --out fed --quiet
expect 0 keys issue edge1/client1 edge1/client2
expect 0 keys broker fed/spec.yaml --out broker
[ "$(names broker)" = "acl broker.crt broker.key ca.crt mosquitto.conf revoked.crl " ] || fail "the broker's folder has $(names broker)"
[ "$(stat -c %a broker)" = 700 ] && [ -z "$(find broker -type f ! -perm 600)" ] || fail "the broker's folder is open to others"
grep -q '[+#]' <(grep -E '^(topic|pattern)' broker/acl) && fail "the access list has wildcards"
kill "$broker" && wait "$broker" 2>/dev/null
start_broker broker/mosquitto.conf
own=hfsad/run/edge1/client1
publish edge1/client1 $own/up good && [ "$(read_first edge1 $own/up)" = "$own/up good" ] || fail "an edge does not hear its client"
# One client fills what it can reach: it stays at a few packets, where every topic of every run took them before.
limit=$(sed -n 's/^max_packet_size //p' broker/mosquitto.conf)
[ "$limit" -lt 100000 ] || fail "a packet of $limit bytes for 3 features"
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$broker/status"; }
before=$(rss)
head -c $((limit - 2000)) /dev/zero >large
for topic in $own/x{1..4} hfsad/r{1..4}/edge1/client1/up $own/down $own/up; do
    as edge1/client1 pub -q 1 -r -t "$topic" -f large
done
[ "$(($(rss) - before))" -lt $((limit / 1024 * 3 + 400)) ] || fail "a client took the broker from $before to $(rss) KiB"
"$HFSAD" run fed/spec.yaml --set run.iterations=5 --quiet --out fed/sim || fail "the simulator"
"$HFSAD" keys issue cloud edge1 edge1/client1 edge1/client2 --force >/dev/null 2>&1
"$HFSAD" keys broker fed/spec.yaml --out broker >/dev/null && kill -HUP "$broker"
for node in "edge --name edge1" "client --all-of edge1"; do
    # shellcheck disable=SC2086 # words
    "$HFSAD" ${node%% *} fed/spec.yaml ${node#* } --set run.iterations=5 --keys keys --broker mqtts://localhost:$port >/dev/null 2>>nodes.log & members="$members $!"
done
"$HFSAD" cloud fed/spec.yaml --set run.iterations=5 --keys keys --broker mqtts://localhost:$port --out fed/out --quiet 2>>nodes.log || fail "$(cat nodes.log)"
cmp fed/sim/model.csv fed/out/model.csv || fail "with the broker's folder: another model"

finish
