#!/usr/bin/env bash
# package.sh DIR: the Debian packages in DIR (make deb) are clean under lintian, and work in a root that has Debian's
# essential packages and what they depend on, nothing else: installed by dpkg, which checks the dependencies, then tried.
# The root is put together from the packages of this machine, so it takes seconds and no network. Part of .ci/run.
set -euo pipefail
debs=$(realpath "$1")
source=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "-- lintian"
lintian --allow-root --fail-on error,warning --suppress-tags-from-file /dev/null "$debs"/*.deb | tee "$work/lintian"
[ ! -s "$work/lintian" ] || { echo "lintian has something to say"; exit 1; }

echo "-- a program that is built with libhfsad-dev"
dev=$work/dev
for deb in "$debs"/libhfsad*.deb; do dpkg-deb -x "$deb" "$dev"; done
# shellcheck disable=SC2046  # flags
cc "$source/examples/train-arrays.c" -o "$work/train" $(PKG_CONFIG_PATH=$dev/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/pkgconfig pkg-config --cflags --libs hfsad) -lm
LD_LIBRARY_PATH=$dev/usr/lib "$work/train" >"$work/train.txt" || { cat "$work/train.txt"; exit 1; }
mkdir "$work/find" && cat >"$work/find/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(find C)
find_package(hfsad REQUIRED)
get_target_property(place hfsad::hfsad IMPORTED_LOCATION_RELEASE)
file(SIZE ${place} size)
CMAKE
cmake -S "$work/find" -B "$work/find/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$dev/usr" >/dev/null

echo "-- Containerfile"
# No container can be built here: its instructions are known, its packages exist, and it takes the files that are made.
grep -vE '^(#|$|    |(FROM|RUN|COPY|WORKDIR|USER|ENTRYPOINT|CMD) )' "$source/Containerfile" && { echo "unknown instructions"; exit 1; }
for package in $(grep -oE '(install -y --no-install-recommends) [^&\\]*' "$source/Containerfile" | sed 's/.*recommends//'); do
    apt-cache show "$package" >/dev/null 2>&1 || { echo "Containerfile: no package $package"; exit 1; }
done
for pattern in $(grep -oE '/tmp/[a-z0-9.-]+_\*\.deb' "$source/Containerfile"); do
    compgen -G "$debs/${pattern#/tmp/}" >/dev/null || { echo "Containerfile: no $pattern"; exit 1; }
done

enter=(chroot)
if [ "$(id -u)" != 0 ]; then
    enter=(unshare --map-root-user chroot)
    "${enter[@]}" / true 2>/dev/null || { echo "SKIPPED: neither root nor user namespaces: the bare root was not tried"; exit 0; }
fi

echo "-- a bare root"
python3 - "$work/root" "$debs" <<'PYTHON'
import glob, os, re, subprocess, sys

root, debs = sys.argv[1:]
wanted = [d for d in glob.glob(debs + "/*.deb") if "-dev_" not in d and "-mpi_" not in d]


def fields(text):
    return {k: v for k, v in re.findall(r"^([A-Za-z-]+): (.*)$", text, re.M)}


entries, provided = {}, {}
for text in open("/var/lib/dpkg/status").read().split("\n\n"):
    f = fields(text)
    if f.get("Status") == "install ok installed":
        entries[f["Package"]] = (f, text)
        for name in f.get("Provides", "").split(","):
            provided.setdefault(name.split("(")[0].strip(), []).append(f["Package"])

own = [fields(subprocess.run(["dpkg-deb", "-f", d], capture_output=True, text=True, check=True).stdout) for d in wanted]
names = {f["Package"] for f in own}
todo = [n for n, (f, _) in entries.items() if f.get("Essential") == "yes"]
needs = [f.get("Depends", "") for f in own]
closure = set()
while todo or needs:
    while needs:
        for group in filter(None, (g.strip() for g in needs.pop().split(","))):
            choices = [re.split(r"[ (:]", c.strip())[0] for c in group.split("|")]
            found = [c for c in choices if c in entries or c in names] or [p for c in choices for p in provided.get(c, [])]
            todo += [n for n in found[:1] if n not in names]
    while todo:
        name = todo.pop()
        if name not in closure:
            closure.add(name)
            f = entries[name][0]
            needs += [f.get("Depends", ""), f.get("Pre-Depends", "")]

files, info = [], []
for name in closure:
    arch = entries[name][0]["Architecture"]
    for stem in (name, f"{name}:{arch}"):
        path = f"/var/lib/dpkg/info/{stem}.list"
        if os.path.exists(path):
            files += [line for line in open(path).read().splitlines() if not re.match(r"/usr/share/(doc|man|locale|i18n)/", line)]
            info += glob.glob(glob.escape(path[:-4]) + "*")
# what postinst scripts have made: the merged /usr, alternatives, users
for link in ("/bin", "/sbin", "/lib", "/lib64"):
    if os.path.islink(link):
        os.makedirs(root + "/" + os.readlink(link), exist_ok=True)
        os.symlink(os.readlink(link), root + link)
files = [p for p in files if p not in ("/.", "/bin", "/sbin", "/lib", "/lib64")]
files += ["/etc/passwd", "/etc/group", "/etc/ld.so.conf"] + glob.glob("/etc/ld.so.conf.d/*")
for admin in glob.glob("/var/lib/dpkg/alternatives/*"):
    lines = open(admin).read().splitlines()
    files += [p for p in [lines[1]] + lines[3::2] + [f"/etc/alternatives/{os.path.basename(admin)}"] if p.startswith("/") and os.path.islink(p)]
files += ["/etc/alternatives/" + n for n in os.listdir("/etc/alternatives")]
listing = "\n".join(sorted({p for p in files if os.path.lexists(p)})) + "\n"
tar = subprocess.Popen(["tar", "--no-recursion", "-cf", "-", "-C", "/", "-T", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL)
os.makedirs(root + "/var/lib/dpkg/info")
unpack = subprocess.Popen(["tar", "-xf", "-", "-C", root, "--keep-directory-symlink", "--no-same-owner"], stdin=tar.stdout)
tar.stdin.write("\n".join(p.lstrip("/") for p in listing.splitlines()).encode())
tar.stdin.close()
assert unpack.wait() == 0
for folder in ("updates", "triggers", "parts"):
    os.makedirs(root + "/var/lib/dpkg/" + folder, exist_ok=True)
for folder in ("/tmp", "/dev", "/proc", "/var/cache", "/var/log", "/root", "/debs"):
    os.makedirs(root + folder, exist_ok=True)
subprocess.run(["cp", "-a", "--no-preserve=ownership", *sorted(set(info)), root + "/var/lib/dpkg/info/"], check=True)
subprocess.run(["cp", *wanted, root + "/debs/"], check=True)
open(root + "/var/lib/dpkg/status", "w").write("\n\n".join(entries[n][1].strip("\n") for n in sorted(closure)) + "\n\n")
open(root + "/var/lib/dpkg/available", "w")
print(f"{len(closure)} packages, {len(files)} files")
PYTHON

in_root() { "${enter[@]}" "$work/root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
in_root ldconfig 2>/dev/null
[ ! -e "$work/root/usr/bin/hfsad" ] && [ ! -e "$work/root/usr/bin/gcc" ] || { echo "the root is not bare"; exit 1; }
# As a user without rights dpkg cannot change owners, which are root's already.
in_root dpkg --force-not-root --force-script-chrootless -i /debs/python3-hfsad* 2>"$work/refused" >/dev/null &&
    { echo "dpkg installed python3-hfsad without hfsad"; exit 1; }
in_root sh -c 'dpkg --force-unsafe-io -i /debs/*.deb' >"$work/dpkg.txt" 2>&1 || { cat "$work/dpkg.txt"; exit 1; }

echo "-- used there"
cat >"$work/root/root/try.sh" <<'SH'
set -e
cd /root
hfsad --version
hfsad generate quantile --edges 2 --clients 3 --features 4 --rows 20 --out d --quiet
hfsad run d/spec.yaml --out out --quiet
test -s out/model.csv && test -s out/coefficients.csv
test -s /usr/share/man/man1/hfsad-run.1.gz && test -s /usr/lib/systemd/system/hfsad-cloud.service
hfsad nodes /usr/share/doc/hfsad/examples/spec.yaml | grep -q '^edge1/client2$'
bash -c '. /usr/share/bash-completion/completions/hfsad && declare -F _hfsad >/dev/null'
python3 -c '
import hfsad, numpy
x = numpy.random.default_rng(1).normal(size=(60, 3))
result = hfsad.run({"loss": {"kind": "squared"}}, hfsad.Data(x, x @ [1, 2, 3]))
assert abs(result.coef - [1, 2, 3]).max() < 1e-3'
dpkg -V hfsad libhfsad0.1 python3-hfsad
dpkg -r python3-hfsad hfsad libhfsad0.1 >/dev/null
test ! -e /usr/bin/hfsad && test ! -e /usr/lib/python3/dist-packages/hfsad
SH
in_root sh /root/try.sh
echo "all passed"
