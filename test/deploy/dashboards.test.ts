/** Own service: it reads all metrics, and starts its threads with the process. */
/** Dashboards and alerts name metrics and labels that a running service has, and each alert has a run-book. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { apiOf } from '../support/api.js'
import { testWithProgram } from '../support/service/programs.js'
import { METRICS_TOKEN } from '../support/service/watch.js'
import { ownService } from '../support/service/own-service.js'

const ROOT = new URL('../../../', import.meta.url)
const ALERTS = new URL('deploy/prometheus/alerts.yml', ROOT)
const RULE_TESTS = new URL('deploy/prometheus/alerts.test.yml', ROOT)
const RUNBOOKS = new URL('docs/guides/operations/runbooks.md', ROOT)
const BOARDS = ['overview', 'tokens', 'sign-ins', 'webhooks', 'egress', 'database']

type Board = {
  readonly uid: string
  readonly title: string
  readonly panels: readonly {
    readonly id: number
    readonly title: string
    readonly targets: readonly { readonly expr: string }[]
  }[]
}
const boards = readdirSync(new URL('deploy/grafana/', ROOT)).map(
  (file) =>
    [
      file.replace('.json', ''),
      JSON.parse(readFileSync(new URL(`deploy/grafana/${file}`, ROOT), 'utf8')) as Board,
    ] as const,
)
const alerts = readFileSync(ALERTS, 'utf8')
const rules = [...alerts.matchAll(/- alert: (\S+)\n\s+expr: ['"](.+)['"]\n/g)].map(
  ([, name = '', expr = '']) => ({ name, expr }),
)
const expressions = [
  ...boards.flatMap(([, { panels }]) => panels.flatMap(({ targets }) => targets)),
  ...rules,
].map(({ expr }) => expr)

test('every dashboard is there, with panels of different titles', (t) => {
  t.deepEqual(boards.map(([name]) => name).toSorted(), BOARDS.toSorted())
  for (const [name, { uid, title, panels }] of boards) {
    t.is(uid, `svc-${name}`)
    t.true(title.startsWith('svc: '))
    t.is(new Set(panels.map((panel) => panel.title)).size, panels.length)
    t.is(new Set(panels.map(({ id }) => id)).size, panels.length)
  }
})

test('there are at least 10 alerts, and each has its run-book', (t) => {
  t.true(rules.length >= 10)
  t.is(rules.length, alerts.split('- alert:').length - 1, 'the test reads all rules')
  const sections = [...readFileSync(RUNBOOKS, 'utf8').matchAll(/^## (\S+)$/gm)].map(
    ([, name]) => name,
  )
  t.deepEqual(
    rules.map(({ name }) => name),
    sections as string[],
  )
  for (const { name } of rules)
    t.true(
      alerts.includes(
        `runbook_url: '{{ $externalLabels.svc_url }}/docs/guides/operations/runbooks#${name.toLowerCase()}'\n`,
      ),
    )
})

test('a running service has every metric, with the labels that are used', async (t) => {
  const running = await ownService({
    environment: {
      SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
      SVC_PASSKEY__ENABLED: 'true',
      // The threads have separate metrics.
      SVC_DEPLOYMENT__THREAD_START: 'at_start',
      // Nothing listens there: the metrics exist all the same.
      SVC_EVENT_SINKS__NATS__SERVERS: '["127.0.0.1:1"]',
    },
  })
  const api = apiOf(running)
  t.teardown(() => api.end())
  await api.workspace()
  const answer = await fetch(`${running.baseUrl}/metrics`, {
    headers: { authorization: `Bearer ${METRICS_TOKEN}` },
  })
  const text = await answer.text()
  const kinds = new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => [name, kind]),
  )
  const labels = new Map<string, Set<string>>()
  for (const [, name = '', pairs = ''] of text.matchAll(/^(svc_\w+)\{(.*)\} /gm)) {
    const known = labels.get(name) ?? new Set<string>()
    for (const [, label = ''] of pairs.matchAll(/(\w+)="/g)) known.add(label)
    labels.set(name, known)
  }
  t.true(expressions.length > 60)
  for (const expr of expressions) {
    const names = [...expr.matchAll(/svc_\w+/g)].map(([name]) => name)
    t.true(names.length > 0 || expr.startsWith('up{'), expr)
    for (const name of names) {
      const base = name.replace(/_(bucket|sum|count)$/, '')
      const isHistogram = kinds.get(base) === 'histogram'
      t.true(isHistogram || kinds.has(name), `${name} exists: ${expr}`)
      if (isHistogram) t.true(name.endsWith('_bucket'), `${name} is read as a histogram: ${expr}`)
      const has = labels.get(name)
      // A counter without an event has no sample, and so no labels yet.
      if (has === undefined) continue
      const selector = new RegExp(`${name}\\{([^}]*)\\}`).exec(expr)?.[1] ?? ''
      const used = [...selector.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label)
      for (const label of used.filter((one) => one !== 'job'))
        t.true(has.has(label), `${name} has no label ${label}: ${expr}`)
    }
  }
})

testWithProgram('promtool', 'promtool accepts the rules and their tests', (t, path) => {
  t.regex(execFileSync(path, ['check', 'rules', ALERTS.pathname]).toString(), /SUCCESS/)
  t.regex(execFileSync(path, ['test', 'rules', RULE_TESTS.pathname]).toString(), /SUCCESS/)
})

testWithProgram('promtool', 'promtool parses every expression of the dashboards', (t, path) => {
  const groups = expressions.map((expr, index) => ({
    record: `panel:number_${index}`,
    // Grafana fills these in.
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', '.*'),
  }))
  const folder = mkdtempSync(join(tmpdir(), 'svc-panels'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'panels.yml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules: groups }] }))
  const said = execFileSync(path, ['check', 'rules', file]).toString()
  t.regex(said, new RegExp(`${groups.length} rules found`))
})
