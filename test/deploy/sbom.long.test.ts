/** `npm run sbom`: the packages of production, all of them and no others. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

type Component = {
  name: string
  version: string
  purl: string
  licenses?: unknown[]
  hashes?: { alg: string }[]
}
type PackageFile = {
  version: string
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
}

test('the software bill of materials lists the packages of production', (t) => {
  const text = execFileSync('npm', ['run', '--silent', 'sbom'], { cwd: ROOT, encoding: 'utf8' })
  const { bomFormat, specVersion, metadata, components } = JSON.parse(text) as {
    bomFormat: string
    specVersion: string
    metadata: { component: { name: string; version: string } }
    components: Component[]
  }
  t.is(bomFormat, 'CycloneDX')
  t.regex(specVersion, /^1\.\d$/)
  const about = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as PackageFile
  t.is(metadata.component.version, about.version)
  const listed = new Map(components.map((one) => [one.name, one]))
  for (const [name, range] of Object.entries(about.dependencies)) {
    // A clone compiles, and an image does not.
    if (name === 'typescript') continue
    // An alias is listed under its own name or under the package's name.
    const version = range.replace(/^npm:.*@/, '')
    const found = components.find(
      (one) => one.version === version && (one.name === name || range.includes(one.name)),
    )
    t.truthy(found, `${name} ${range}`)
  }
  const production = new Set(Object.keys(about.dependencies))
  for (const name of Object.keys(about.devDependencies)) {
    if (!production.has(name)) t.false(listed.has(name), `${name} is for development only`)
  }
  for (const { name, licenses, hashes, purl } of components) {
    t.true((licenses ?? []).length > 0, `${name} has a licence`)
    t.regex(purl, /^pkg:npm\//)
    t.true(
      (hashes ?? []).some(({ alg }) => alg === 'SHA-512'),
      name,
    )
  }
})
