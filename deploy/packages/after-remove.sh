# After the files have been removed. `purged` is set if the configuration is removed too. The data directory remains.
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ -z "$purged" ] || rm -rf /etc/scoregate
