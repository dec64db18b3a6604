# A container by hand: container.sh ROOT BINARY, in a mount namespace of its own.
# The root is empty but for the binary and what it is linked to, and read-only;
# then the user is one without rights. Each step is an exec: the process stays.
set -eu
root=$1
binary=$2
mount -t tmpfs -o mode=755 root "$root"
for folder in usr bin lib lib32 lib64; do
    if [ -L "/$folder" ]; then
        cp -P "/$folder" "$root/$folder"
    elif [ -d "/$folder" ]; then
        mkdir "$root/$folder"
        mount --bind "/$folder" "$root/$folder"
        mount -o remount,bind,ro "$root/$folder"
    fi
done
mkdir "$root/proc"
mount --bind /proc "$root/proc"
mount -o remount,bind,ro "$root/proc"
: >"$root/queue-proxy"
mount --bind "$binary" "$root/queue-proxy"
mount -o remount,bind,ro "$root/queue-proxy"
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --reuid 65532 --regid 65532 --clear-groups \
    --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs --pdeathsig KILL \
    /queue-proxy
