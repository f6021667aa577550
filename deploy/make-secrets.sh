#!/bin/sh
# Makes the secrets and keys of an installation, once: sh make-secrets.sh [FOLDER] (secrets). What is there is kept.
# Back the folder up: without the log's keys the log cannot continue, without secret-key API keys stop working.
set -eu
umask 077
folder=${1:-secrets}
mkdir -p "$folder"
cd "$folder"

# make FILE COMMAND...: the command's output becomes the file, whole or not at all.
make() {
  file=$1
  shift
  if [ -e "$file" ]; then
    echo "kept $folder/$file"
    return
  fi
  "$@" > "$file.new"
  mv "$file.new" "$file"
  echo "made $folder/$file"
}

password() { openssl rand -hex 24; }
# A password belongs to its URL: the URL is made of the file with it.
database_url() { echo "postgres://attest:$(cat postgres-password)@${POSTGRES_ADDRESS:-postgres:5432}/attest"; }
nats_url() { echo "nats://attest:$(cat nats-password)@${NATS_ADDRESS:-nats:4222}"; }
nats_conf() {
  echo "authorization { user: attest, password: \"$(cat nats-password)\" }"
}

for environment in live test; do
  make "dsse-$environment.pem" openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256
  make "log-$environment.pem" openssl genpkey -algorithm ed25519
done
make secret-key sh -c 'echo "k1:$(openssl rand -base64 32)"'
make admin-token password
make postgres-password password
make nats-password password
make database-url database_url
make nats-url nats_url
make nats.conf nats_conf
make store-password password

# Containers read them as user 1000.
if [ "$(id -u)" = 0 ]; then
  chown -R 1000:1000 .
elif [ "$(id -u)" != 1000 ]; then
  echo "for containers: sudo chown -R 1000:1000 $folder"
fi
