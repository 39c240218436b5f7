/** What a public repository has: the workflow runs our commands, the image says what it is, decisions have a date. */
import { existsSync, readFileSync } from 'node:fs'
import test from 'ava'
import { parse } from 'yaml'
import { readDockerfile } from './dockerfile.js'

type Step = { readonly run?: string; readonly with?: Readonly<Record<string, string>> }
type Job = {
  readonly container?: { readonly image: string }
  readonly strategy?: { readonly matrix: { readonly node: readonly number[] } }
  readonly steps: readonly Step[]
}

const { jobs } = parse(readFileSync('.github/workflows/ci.yml', 'utf8')) as {
  jobs: Readonly<Record<string, Job>>
}
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  version: string
  scripts: Readonly<Record<string, string>>
}
const commandsOf = (job: Job | undefined) => (job?.steps ?? []).map(({ run = '' }) => run)
const commands = Object.values(jobs).flatMap(commandsOf)

test('the workflow runs every test on each supported Node.js', (t) => {
  const { test: tests } = jobs
  t.true(commandsOf(tests).includes('.ci/run'))
  t.deepEqual(tests?.strategy?.matrix.node, [20, 22, 24])
  t.regex(tests?.container?.image ?? '', /\$\{\{ matrix\.node \}\}/)
})

test('the workflow builds image, chart and packages with commands that exist', (t) => {
  const all = commands.join('\n')
  for (const name of ['docker build', 'helm package', 'pack:client', 'pack:resource-server'])
    t.true(all.includes(name), name)
  const scripts = [...all.matchAll(/npm run (\S+)/g)].map(([, name]) => name!)
  t.deepEqual(
    scripts.filter((name) => !Object.hasOwn(manifest.scripts, name)),
    [],
  )
  const files = [...all.matchAll(/(?:^|\s)((?:\.ci|deploy)\/[\w./-]+)/g)].map(([, path]) => path!)
  t.true(files.length >= 3)
  t.deepEqual(
    files.filter((path) => !existsSync(path.replace(/\/\*.*|\/$/, ''))),
    [],
  )
  const known = readFileSync('Dockerfile', 'utf8')
  for (const [, name] of all.matchAll(/--build-arg (\w+)=/g))
    t.true(known.includes(`ARG ${name}=`), name)
})

test('the image names its title, version, licence and source', (t) => {
  const image = readDockerfile('Dockerfile').find(({ name }) => name === 'image')
  const words = image?.instructions.find(({ name }) => name === 'LABEL')?.words ?? ''
  const labels = Object.fromEntries(
    [...words.matchAll(/org\.opencontainers\.image\.(\w+)="([^"]*)"/g)].map(
      ([, name, value]) => [name!, value!] as const,
    ),
  )
  const { title, version, licenses, source, revision } = labels
  t.deepEqual(
    { title, version, licenses },
    { title: 'svc', version: manifest.version, licenses: 'MIT' },
  )
  t.deepEqual({ source, revision }, { source: '${SOURCE}', revision: '${REVISION}' })
})

test('each decision record has a number, a date, a status, its reason, its price and alternatives', (t) => {
  const page = readFileSync('docs/concepts/decision-records.md', 'utf8')
  const records = page.split(/^## /m).slice(1)
  t.true(records.length >= 14)
  for (const [index, record] of records.entries()) {
    const number = index + 1
    t.regex(record, new RegExp(`^${number}\\. \\S`), `record ${number}`)
    const [, status = '', later] =
      /^\d{4}-\d\d-\d\d · (accepted|replaced by (\d+))$/m.exec(record) ?? []
    t.not(status, '', `record ${number} has a date and a status`)
    if (later !== undefined) t.true(Number(later) > number && Number(later) <= records.length)
    for (const part of ['Why', 'Price', 'Alternatives'])
      t.regex(record, new RegExp(`^- \\*\\*${part}:\\*\\* \\S`, 'm'), `record ${number}: ${part}`)
  }
})
