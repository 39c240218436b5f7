/**
 * Completes package-lock.json after a dependency changed: a registry that lacks the binaries of some
 * platforms leaves their entries out, and `npm ci` then refuses the whole file, here and everywhere.
 * The entries are those of optional packages pinned by their parent: version and platform, without
 * an integrity that was not checked here. Run it after `npm install`.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const OSES = ['android', 'darwin', 'win32', 'freebsd', 'openharmony', 'linux']
const CPUS = ['arm64', 'x64', 'ia32', 'riscv64', 's390x', 'ppc64', 'arm']
const EXACT = /^\d+\.\d+\.\d+(-[\w.]+)?$/

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
for (const [path, parent] of Object.entries({ ...lock.packages })) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const place = `node_modules/${name}`
    if (lock.packages[place] || lock.packages[`${path}/${place}`]) continue
    const os = OSES.find((word) => name.includes(word))
    const cpu = CPUS.find((word) => name.includes(word))
    if (!EXACT.test(version) || !os || !cpu) throw new Error(`${path}: ${name}@${version}?`)
    lock.packages[place] = {
      version,
      cpu: [cpu],
      ...(parent.dev ? { dev: true } : {}),
      ...(name.includes('musl') ? { libc: ['musl'] } : {}),
      license: parent.license,
      optional: true,
      os: [os],
    }
    process.stdout.write(`completed ${name}@${version}\n`)
  }
}
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)),
)
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`)
