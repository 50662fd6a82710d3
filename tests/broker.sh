# Sourced by cli_*.sh tests after shell.sh: a mosquitto on loopback, and processes that are gone when the test is. Theirs
# are the numbers in $members.
# shellcheck shell=bash disable=SC2034
PATH=$PATH:/usr/sbin
export PYTHONPATH=$tests${PYTHONPATH:+:$PYTHONPATH} # frames.py
members=
stop() {
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$members" ] || kill -KILL $members 2>/dev/null
    rm -rf "${work:?}"
}
trap stop EXIT

# $python: one that speaks MQTT; without one the test ends. Debian's package is for Debian's Python, which need not be
# the first one.
need_paho() {
    local one
    for one in python3 /usr/bin/python3; do
        "$one" -c 'import paho.mqtt.client' 2>/dev/null && python=$one && return
    done
    echo "skipped: no Python with paho-mqtt (Debian: python3-paho-mqtt, which scripts/need test installs)"
    finish
    exit 0
}

# until_true SECONDS COMMAND…
until_true() {
    local end=$((SECONDS + $1))
    while ! "${@:2}" 2>/dev/null; do
        [ "$SECONDS" -lt "$end" ] || return 1
        read -r -t 0.02 <><(:)
    done
    return 0
}
broker_answers() {
    kill -0 "$broker" || return 0 # it will not any more
    (exec 3<>"/dev/tcp/127.0.0.1/$port")
}
# start_broker CONFIGURATION: its line `listener PORT` gets a port that is free, $port; its number is in $broker.
start_broker() {
    local attempt
    for attempt in 1 2 3 4 5; do
        port=$((20000 + (RANDOM * 7 + $$ + attempt) % 12000))
        sed "s/^listener [0-9]*/listener $port/" "$1" >broker.conf
        [ "$(id -u)" != 0 ] || echo 'user root' >>broker.conf # it could not read our folder otherwise
        setpriv --pdeathsig KILL mosquitto -c broker.conf 2>broker.log >/dev/null &
        broker=$!
        until_true 10 broker_answers && kill -0 "$broker" 2>/dev/null && members="$members $broker" && return
        kill "$broker" 2>/dev/null
        wait "$broker" 2>/dev/null
    done
    fail "mosquitto does not start: $(cat broker.log)"
    finish
}
