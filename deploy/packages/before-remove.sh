# Before the last version is removed: stops and disables the units.
if command -v systemctl >/dev/null; then
    [ ! -d /run/systemd/system ] || systemctl stop @UNITS@ scoregate-backup.service scoregate-import.service
    systemctl --quiet --no-reload disable @UNITS@
fi
