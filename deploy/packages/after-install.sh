# After the files of a package have been installed. `upgraded` is set if an older version was installed before.
systemd-sysusers scoregate.conf
systemd-tmpfiles --create scoregate.conf
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # The socket stays open: connections wait until the new process accepts them. A new installation is not started, since it
    # has no backend yet.
    [ -z "$upgraded" ] || systemctl try-restart scoregate.service
fi
