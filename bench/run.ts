/**
 * `npm run bench [-- NAME [options]]`: lists the benches, or runs one of them. `all` measures the rows of the table in
 * docs/reference/performance.md, and `table` writes that table.
 */
import { readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
/**
 * Benches are the modules that publish a report when they are loaded. These modules are not
 * benches.
 */
const NOT_A_BENCH =
  /(^|\/)(harness|run|model|wrk|webhook-receiver|whole-service|foreign-program|postgres-cpu|webhook-stage|stage|loopback-tls|generator|servers|verifier|protocol|glewlwyd|peer-.*|relays|.*-server|.*-thread)\.js$/

const names = readdirSync(here, { recursive: true, encoding: 'utf8' })
  .filter(
    (path) => path.endsWith('.js') && !path.startsWith('published') && !NOT_A_BENCH.test(path),
  )
  .map((path) => relative('.', path).replace(/\.js$/, ''))
  .sort()

const PUBLISHED = ['all', 'table']

const name = process.argv[2]
if (name !== undefined && PUBLISHED.includes(name)) {
  await import(`./published/${name}.js`)
} else if (name === undefined || !names.includes(name)) {
  if (name !== undefined) console.error(`there is no bench ${name}`)
  console.log(`npm run bench -- NAME [--rounds n] [--ms n] [--json file] [--markdown file]\n`)
  for (const each of names) console.log(`  ${each}`)
  console.log(`
npm run bench -- all [--quick] [--only ID,...] [--note WORDS] [--json FILE]
npm run bench -- table [--json FILE]`)
  process.exitCode = name === undefined ? 0 : 1
} else {
  process.argv.splice(2, 1)
  await import(pathToFileURL(join(here, `${name}.js`)).href)
}
