# After the files of a package have been installed. `upgraded` is set if an older version was installed before.
systemd-sysusers scoregate.conf
# As tmpfiles.d states it for the next boot. systemd-tmpfiles needs /proc, which an image may be built without.
install -d -m 0700 -o scoregate -g scoregate /var/lib/scoregate
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # The socket stays open: connections wait until the new process accepts them. A new installation is not started, since it
    # has no backend yet. A process whose settings the new version refuses continues to run.
    if [ -n "$upgraded" ] && scoregate check --config /etc/scoregate/scoregate.toml; then
        systemctl try-restart scoregate.service || echo 'scoregate does not start: see journalctl -u scoregate' >&2
    elif [ -n "$upgraded" ]; then
        echo 'scoregate was not restarted: correct /etc/scoregate/scoregate.toml, then run systemctl restart scoregate' >&2
    fi
fi
