#!/usr/bin/env bash
# The units of deploy/ under a real systemd: a container over a copy of this machine's root that is thrown away, with a
# broker, a cloud, an edge and two clients as services, each confined as its unit says. The edge is killed, and started
# again by systemd; a client whose data is wrong is not. The result is that of `hfsad run`. By hand, as root, with
# systemd-nspawn (Debian: systemd-container); no test of `make check`, whose machines have no systemd. Needs HFSAD and
# SOURCE_DIR.
units=$(realpath "${SOURCE_DIR:?}")/deploy
. "$(dirname "$0")/shell.sh"
tag=hfsad-units$$
keep=() groups=()
stop() {
    umount root 2>/dev/null
    umount layer 2>/dev/null
    for group in "${groups[@]}"; do find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null; done
    rm -rf "${work:?}"
}
trap stop EXIT
mkdir layer root
if ! command -v systemd-nspawn >/dev/null || ! mount -t tmpfs tmpfs layer || ! mkdir layer/up layer/work ||
    ! mount -t overlay overlay -o lowerdir=/,upperdir=layer/up,workdir=layer/work root; then
    echo "no systemd-nspawn, or no right to mount: the units are not started"
    exit 77
fi

# without a systemd of its own this machine must have a place for the container's groups of processes
if [ "$(cat /proc/1/comm)" != systemd ]; then
    keep=(--keep-unit)
    for tree in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
        mkdir "$tree/$tag" 2>/dev/null && groups+=("$tree/$tag")
    done
fi
etc=root/etc/hfsad system=root/etc/systemd/system
mkdir -p $etc root/usr/local/bin
cp "$HFSAD" root/usr/local/bin/hfsad
cp "$units"/*.service $system/
expect 0 generate quantile --edges 1 --clients 2 --features 4 --tree --out made
cp -r made/data $etc/data
printf 'data: data\nloss: {kind: quantile, tau: 0.5}\nrun: {iterations: 200}\n' >$etc/spec.yaml
expect 0 run $etc/spec.yaml --out sim --quiet
expect 0 nodes $etc/spec.yaml
cp stdout.txt $etc/nodes.txt
echo 'federation: {nodes: nodes.txt}' >>$etc/spec.yaml
(cd $etc && "$HFSAD" keys init && "$HFSAD" keys issue cloud edge1 edge1/client1 edge1/client2 edge1/client3) >/dev/null
sed -i "s|$work/root||; \$auser root" $etc/keys/mosquitto.conf
echo 'y,x1' >$etc/data/edge1/client3.csv # no client of this federation
echo 'HFSAD_OPTIONS=--broker mqtts://localhost' >$etc/hfsad.env
chmod 755 $etc
printf '[Service]\nExecStart=/usr/sbin/mosquitto -c /etc/hfsad/keys/mosquitto.conf\n' >$system/mosquitto.service
cat >root/usr/local/bin/try <<'SH'
#!/bin/bash
groupadd --system hfsad-rows
chgrp -R hfsad-rows /etc/hfsad/data
chmod -R u=rwX,g=rX,o= /etc/hfsad/data
systemctl start mosquitto hfsad-cloud hfsad-edge@edge1 hfsad-client@edge1-client1
systemctl start hfsad-client@edge1-client3
until journalctl -u hfsad-client@edge1-client3 | grep -q 'status=2'; do sleep 0.1; done
systemctl kill -s KILL hfsad-edge@edge1
systemctl start hfsad-client@edge1-client2
for _ in $(seq 600); do systemctl is-active -q hfsad-cloud || break; sleep 0.1; done
mkdir /srv/result
journalctl --no-pager -u 'hfsad*' >/srv/result/journal
systemctl show -p NRestarts --value hfsad-client@edge1-client3 >/srv/result/restarts
cp -r /var/lib/private/hfsad /srv/result/state
systemctl --no-block poweroff
SH
chmod +x root/usr/local/bin/try
printf '[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/usr/local/bin/try\nTimeoutStartSec=100\n' >$system/try.service
printf '[Unit]\nDefaultDependencies=no\nWants=systemd-journald.service systemd-journald.socket dbus.socket try.service\n' >$system/try.target
# there is no network to wait for
ln -sf /dev/null $system/systemd-networkd-wait-online.service
ln -sf /dev/null $system/systemd-networkd.service
rm -f root/etc/machine-id
echo uninitialized >root/etc/machine-id
(
    for group in "${groups[@]}"; do echo "$BASHPID" >"$group/cgroup.procs"; done
    exec timeout 120 systemd-nspawn -q -D "$work/root" "${keep[@]}" --register=no --link-journal=no --private-network \
        --console=pipe -b systemd.unit=try.target
) >boot.txt 2>&1 </dev/null || echo "systemd-nspawn: $(tail -n 1 boot.txt)"
result=layer/up/srv/result
[ -e $result/journal ] || { fail "nothing came of it: $(tail -n 5 boot.txt)"; finish; }
grep -q 'hfsad-edge@edge1.service: Scheduled restart' $result/journal || fail "the edge was not started again: $(cat $result/journal)"
[ "$(cat $result/restarts)" = 0 ] || fail "a unit that ended with 2 was started again"
cmp -s sim/model.csv $result/state/cloud/out/model.csv || fail "the model: $(tail -n 20 $result/journal)"
finish
