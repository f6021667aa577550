/** The programs of others that tests compare with, and the Debian packages that have them. */

export type Program = {
  /** Commands by name, with their paths in the tree of the unpacked packages; the first is the program. */
  commands: Readonly<Record<string, string>>;
  /** Debian's packages; the libraries that they depend on come with them, nothing else does. */
  packages: readonly string[];
  /** What it needs there beside the path of its libraries, for a shell's double quotes; `$tree` is the tree. */
  env?: Readonly<Record<string, string>>;
  /** Folders of libraries in that of the architecture. */
  libraries?: readonly string[];
  /** Files that are written into the tree, by path; `$tree` is the tree. */
  files?: Readonly<Record<string, string>>;
  /** Folders beside those of PATH where a machine may have it. */
  folders?: readonly string[];
  /** Arguments with which an installed one succeeds if it will do. */
  suits?: readonly string[];
};

const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>$tree/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`;

/** Debian's own, which its modules are built for, comes first. */
const PYTHON = {
  commands: { python3: 'usr/bin/python3' },
  env: {
    PYTHONHOME: '$tree/usr',
    PYTHONPATH: `$tree/usr/lib/python3/dist-packages\${PYTHONPATH:+:$PYTHONPATH}`,
  },
  folders: ['/usr/bin'],
};

/** What a copy, a rewind and a supervisor of Postgres need. */
const POSTGRES = [
  'postgres',
  'initdb',
  'pg_basebackup',
  'pg_controldata',
  'pg_ctl',
  'pg_isready',
  'pg_rewind',
  'psql',
];

/** By the name of the module in this folder that a test imports to have it. */
export const PROGRAMS = {
  chromium: {
    commands: { chromium: 'usr/lib/chromium/chromium' },
    packages: ['chromium', 'chromium-common', 'fonts-dejavu-core', 'xkb-data'],
    env: { FONTCONFIG_FILE: '$tree/fonts.conf', XKB_CONFIG_ROOT: '$tree/usr/share/X11/xkb' },
    libraries: ['nss', 'pulseaudio'],
    files: { 'fonts.conf': FONTS },
  },
  curl: { commands: { curl: 'usr/bin/curl' }, packages: ['curl'] },
  'docker-registry': {
    commands: { 'docker-registry': 'usr/bin/docker-registry' },
    packages: ['docker-registry'],
  },
  etcd: { commands: { etcd: 'usr/bin/etcd' }, packages: ['etcd-server'] },
  fish: { commands: { fish: 'usr/bin/fish' }, packages: ['fish', 'fish-common'] },
  git: {
    commands: { git: 'usr/bin/git', 'git-shell': 'usr/bin/git-shell' },
    packages: ['git'],
    env: {
      GIT_EXEC_PATH: '$tree/usr/lib/git-core',
      GIT_TEMPLATE_DIR: '$tree/usr/share/git-core/templates',
    },
  },
  haproxy: { commands: { haproxy: 'usr/sbin/haproxy' }, packages: ['haproxy'], folders: ['/usr/sbin'] },
  openssl: {
    commands: { openssl: 'usr/bin/openssl' },
    packages: ['openssl'],
    env: { OPENSSL_CONF: '$tree/etc/ssl/openssl.cnf' },
  },
  pgbouncer: {
    commands: { pgbouncer: 'usr/sbin/pgbouncer' },
    packages: ['pgbouncer'],
    folders: ['/usr/sbin'],
  },
  postgresql: {
    commands: Object.fromEntries(POSTGRES.map((name) => [name, `usr/lib/postgresql/15/bin/${name}`])),
    packages: ['postgresql-15', 'postgresql-client-15'],
    folders: ['18', '17', '16', '15'].map((version) => `/usr/lib/postgresql/${version}/bin`),
  },
  promtool: {
    commands: { promtool: 'usr/bin/promtool', prometheus: 'usr/bin/prometheus' },
    packages: ['prometheus'],
  },
  'python-grpc': {
    ...PYTHON,
    packages: ['python3-grpc-tools', 'python3-pkg-resources'],
    suits: ['-c', 'import grpc, grpc_tools.protoc'],
  },
  'python-opentimestamps': {
    ...PYTHON,
    packages: ['python3-opentimestamps'],
    suits: ['-c', 'import opentimestamps.core.timestamp, bitcoin.core'],
  },
  'python-requests': {
    ...PYTHON,
    packages: ['python3-requests'],
    suits: ['-c', 'import requests'],
  },
  // That of BSD takes other arguments.
  script: { commands: { script: 'usr/bin/script' }, packages: ['bsdutils'], suits: ['--version'] },
  shellcheck: { commands: { shellcheck: 'usr/bin/shellcheck' }, packages: ['shellcheck'] },
  softhsm: {
    commands: { 'softhsm2-util': 'usr/bin/softhsm2-util', 'pkcs11-tool': 'usr/bin/pkcs11-tool' },
    packages: ['softhsm2', 'softhsm2-common', 'opensc', 'opensc-pkcs11'],
  },
  // Started by root, sshd wants a user of its own, which libnss-wrapper finds in a file.
  sshd: {
    commands: { sshd: 'usr/sbin/sshd', ssh: 'usr/bin/ssh', 'ssh-keygen': 'usr/bin/ssh-keygen' },
    packages: ['openssh-server', 'openssh-client', 'libnss-wrapper'],
    env: { LD_PRELOAD: 'libnss_wrapper.so' },
    folders: ['/usr/sbin'],
  },
  'systemd-analyze': {
    commands: { 'systemd-analyze': 'usr/bin/systemd-analyze' },
    packages: ['systemd'],
    libraries: ['systemd'],
  },
  wget: { commands: { wget: 'usr/bin/wget' }, packages: ['wget'] },
  xmllint: { commands: { xmllint: 'usr/bin/xmllint' }, packages: ['libxml2-utils'] },
  zsh: { commands: { zsh: 'bin/zsh' }, packages: ['zsh', 'zsh-common'] },
} satisfies Record<string, Program>;

export type ProgramName = keyof typeof PROGRAMS;
