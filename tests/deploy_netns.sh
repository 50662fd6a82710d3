#!/usr/bin/env bash
# The commands of docs/deploy.md, as printed, on three machines: network namespaces joined by veth, each with its own
# /srv and /etc/hosts. The result is that of `hfsad run`. Needs HFSAD and SOURCE_DIR; without the right to make
# namespaces it says so and passes. The units of deploy/ are checked where systemd-analyze is there.
page=$(realpath "${SOURCE_DIR:?}")/docs/deploy.md
units=$(realpath "$SOURCE_DIR")/deploy
# Thousands of commits are synced here; in memory that takes no time.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
export PATH=$PATH:/usr/sbin:/sbin
tag=hfsad$$
pids=()
stop() {
    local machine
    for machine in cloud gateway device; do
        # shellcheck disable=SC2046  # a list
        kill -9 $(ip netns pids "$tag$machine" 2>/dev/null) 2>/dev/null
        ip netns del "$tag$machine" 2>/dev/null
    done
    rm -rf "$work"
}
trap stop EXIT

if command -v systemd-analyze >/dev/null; then
    mkdir units bin
    for unit in "$units"/*.service; do
        # where the program is installed does not matter here; an instance is needed to look into a template
        sed "s|/usr/local/bin/hfsad|$HFSAD|; /^EnvironmentFile/d" "$unit" >"units/$(basename "${unit/@/@edge1-client7}")"
    done
    systemd-analyze verify units/*.service >verify.txt 2>&1 || fail "systemd-analyze verify: $(cat verify.txt)"
    grep -q "units/" verify.txt && fail "systemd-analyze verify: $(cat verify.txt)"
    # 2.0 of 10: "OK"
    systemd-analyze security --offline=true --threshold=20 units/*.service >security.txt 2>&1 || fail "exposure: $(grep -h Overall security.txt)"
else
    echo "systemd-analyze is missing: the units are not checked"
fi

if ! ip netns add "${tag}cloud" 2>netns.txt || ! ip netns exec "${tag}cloud" mount --bind "$work" /srv 2>>netns.txt; then
    echo "no namespaces here ($(head -1 netns.txt)): docs/deploy.md is not tried"
    finish
    exit
fi
ip netns add "${tag}gateway"
ip netns add "${tag}device"
# link A B NET: A has address 1, B has 2
link() {
    ip -n "$tag$1" link add "to-$2" type veth peer name "to-$1" netns "$tag$2"
    ip -n "$tag$1" addr add "$3.1/24" dev "to-$2"
    ip -n "$tag$2" addr add "$3.2/24" dev "to-$1"
    ip -n "$tag$1" link set "to-$2" up
    ip -n "$tag$2" link set "to-$1" up
}
link cloud gateway 10.77.1
link gateway device 10.77.2
printf '%s\n' '127.0.0.1 localhost' '10.77.1.1 cloud' '10.77.1.2 gateway' >hosts.cloud
cp hosts.cloud hosts.gateway
printf '%s\n' '127.0.0.1 localhost' '10.77.2.1 gateway' >hosts.device
mkdir bin 2>/dev/null
ln -s "$HFSAD" bin/hfsad
for machine in cloud gateway device; do
    mkdir -p "$machine/hfsad"
    ip -n "$tag$machine" link set lo up
done
chmod 755 "$work"

# on MACHINE: the commands on stdin
on() {
    ip netns exec "$tag$1" env PATH="$work/bin:$PATH" WORK="$work" MACHINE="$1" COMMANDS="$(cat)" bash -c '
        mount --bind "$WORK/hosts.$MACHINE" /etc/hosts && mount --bind "$WORK/$MACHINE" /srv && exec bash -euc "$COMMANDS"'
}
# what stands for scp: machine:/srv/path is a file here
scp() {
    local words=() word
    for word in "$@"; do
        [[ $word == *:/srv/* ]] && word="$work/${word%%:*}/${word#*:/srv/}"
        words+=("$word")
    done
    cp -p "${words[@]}"
}

# The blocks of the page: block.N holds the commands, block.N.tag where they run.
awk '/^```sh / { n++; sub(/^```sh /, ""); print > ("block." n ".tag"); inside = 1; next }
     /^```/ { inside = 0 }
     inside { print > ("block." n) }' "$page"
blocks=0
while [ -e "block.$((blocks + 1))" ]; do
    blocks=$((blocks + 1))
    place=$(cat "block.$blocks.tag")
    case $place in
    copy) . "./block.$blocks" || fail "block $blocks: $(cat "block.$blocks")" ;;
    *' &')
        on "${place% &}" <"block.$blocks" >"log.$blocks" 2>&1 &
        pids+=($!)
        ;;
    *) timeout 100 bash -c "$(declare -f on); tag=$tag work='$work' on $place" <"block.$blocks" >"log.$blocks" 2>&1 ||
        fail "block $blocks on $place: $(cat "block.$blocks" "log.$blocks" log.*)" ;;
    esac
done
[ "$blocks" -ge 12 ] || fail "only $blocks blocks on the page"
# status on the gateway, by both brokers
shown=$(grep -l '^node .*state' log.*)
[ "$(grep -cE '^ *(cloud|edge1|client1|client2) .* done ' "$shown")" = 4 ] || fail "status: $(cat "$shown")"
[ -e gateway/hfsad/data ] || [ -e cloud/hfsad/data ] && fail "data has left the device"
# the device cannot reach the cloud
on device <<<'! timeout 2 bash -c "exec 3<>/dev/tcp/10.77.1.1/8883" 2>/dev/null' || fail "the device reaches the cloud"
[ -e cloud/hfsad/broker/ca.key ] || [ -e gateway/hfsad/keys/ca.key ] && fail "the authority's key has left its folder"
[ "$(stat -c %U:%a cloud/hfsad/keys/ca.key)" = "$(id -un):600" ] || fail "ca.key: $(stat -c %U:%a cloud/hfsad/keys/ca.key)"
(cd device/hfsad && "$HFSAD" run spec.yaml --quiet --out ../../sim) || fail "the simulator"
cmp sim/model.csv cloud/hfsad/out/model.csv || fail "model.csv differs from the simulator's"
finish
