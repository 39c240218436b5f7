/**
 * Writes the software bill of materials of production (CycloneDX) to standard output: `npm run --silent sbom`.
 *
 * `npm sbom --omit dev` also omits packages of production that a development package needs too. So npm lists all, and
 * the lock file says which of them production installs.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']
const { status, stdout, stderr } = spawnSync('npm', args, {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
})
if (status !== 0) {
  process.stderr.write(stderr)
  process.exit(1)
}
const bill = JSON.parse(stdout)
const { packages } = JSON.parse(
  readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'),
)
const produced = new Set()
for (const [path, { version, dev, name }] of Object.entries(packages)) {
  // A clone compiles itself. The image has no compiler (runtime/trim-packages.mjs).
  if (path === '' || dev === true || /^node_modules\/@?typescript\b/.test(path)) continue
  produced.add(`${name ?? path.slice(path.lastIndexOf('node_modules/') + 13)}@${version}`)
}
// The name of an alias comes from our package.json, and its reference has the name in the registry.
const keep = ({ name, version, 'bom-ref': ref }) =>
  produced.has(`${name}@${version}`) || produced.has(ref)
const kept = bill.components.filter(keep)
const refs = new Set([bill.metadata.component['bom-ref'], ...kept.map((one) => one['bom-ref'])])
const dependencies = bill.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }))
process.stdout.write(`${JSON.stringify({ ...bill, components: kept, dependencies }, null, 2)}\n`)
