/** The Helm chart: every example renders to objects that Kubernetes accepts and the service understands. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { parse, parseAllDocuments } from 'yaml'
import { routes } from '../../gateway/route-table.js'
import { loadSettings } from '../../runtime/process/configuration/load-settings.js'
import { placements } from '../../runtime/process/planes.js'
import { program } from '../support/service/programs.js'
import { faultsOf, type KubernetesObject } from './manifest-check.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const CHART = join(ROOT, 'deploy/helm/svc')
const EXAMPLES = readdirSync(join(CHART, 'examples'))
/** Where Debian puts the sources of Go packages. */
const GO_SOURCES = '/usr/share/gocode'
const go = program('go')
const canRender =
  go !== undefined && existsSync(join(GO_SOURCES, 'src/github.com/Masterminds/sprig'))
const rendering = canRender ? test : test.skip
const why = canRender
  ? ''
  : ' (skipped: golang-go or golang-github-masterminds-sprig-dev is not installed)'

const folder = mkdtempSync(join(tmpdir(), 'svc-helm-'))
test.after.always(() => rmSync(folder, { recursive: true, force: true }))

const renderer = join(folder, 'helm-template')
function build(): void {
  if (existsSync(renderer)) return
  const source = join(ROOT, 'test/deploy/helm-template.go')
  execFileSync(go!, ['build', '-o', renderer, source], {
    env: {
      ...process.env,
      GO111MODULE: 'off',
      GOFLAGS: '',
      GOPATH: GO_SOURCES,
      GOCACHE: join(folder, 'go'),
    },
  })
}

type Manifest = KubernetesObject & { readonly spec?: never; readonly data?: Record<string, string> }
type Container = {
  name: string
  args: string[]
  env?: { name: string; value: string }[]
  ports?: { name: string; containerPort: number }[]
  securityContext: Record<string, unknown>
  volumeMounts: { name: string; mountPath: string }[]
}
type PodSpec = {
  securityContext: Record<string, unknown>
  containers: Container[]
  initContainers?: Container[]
  volumes: { name: string }[]
}

function render(values: string): Manifest[] {
  build()
  const text = execFileSync(renderer, [CHART, values, 'id', 'identity'], { encoding: 'utf8' })
  return parseAllDocuments(text)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0]
      return document.toJS() as Manifest | null
    })
    .filter((object) => object !== null)
}

const podsOf = (objects: Manifest[]): PodSpec[] =>
  objects
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    .map((object) => (object.spec as unknown as { template: { spec: PodSpec } }).template.spec)

for (const example of EXAMPLES) {
  rendering(`the example ${example} renders to valid objects${why}`, (t) => {
    const objects = render(join(CHART, 'examples', example))
    for (const object of objects) {
      const faults = faultsOf(object)
      if (faults === undefined) t.is(object.kind, 'ServiceMonitor')
      else t.deepEqual(faults, [], `${object.kind} ${object.metadata.name}`)
    }
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    t.is(new Set(names).size, names.length)
    t.true(names.includes('Job id-migrate'))
    t.true(names.includes('NetworkPolicy id'))
    for (const pod of podsOf(objects)) {
      t.like(pod.securityContext, { runAsNonRoot: true, runAsUser: 10_001 })
      const containers = [...pod.containers, ...(pod.initContainers ?? [])]
      for (const { securityContext, volumeMounts, name } of containers) {
        t.like(securityContext, {
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        })
        for (const mount of volumeMounts) {
          t.true(
            pod.volumes.some((volume) => volume.name === mount.name),
            `${name}: ${mount.name}`,
          )
        }
      }
      // The service never mounts the master keys.
      const service = pod.containers.find((one) => one.name === 'svc')
      t.false(service?.volumeMounts.some(({ name }) => /^kms-(keys|secret)$/.test(name)) ?? false)
    }
  })

  rendering(`the configuration of the example ${example} is accepted${why}`, (t) => {
    const objects = render(join(CHART, 'examples', example))
    const toml = objects.find(({ kind }) => kind === 'ConfigMap')!.data!['svc.toml']!
    const deployments = podsOf(objects.filter(({ kind }) => kind === 'Deployment'))
    t.true(deployments.length > 0)
    for (const { containers } of deployments) {
      const { env = [] } = containers.find(({ name }) => name === 'svc')!
      const url = 'postgres://svc:secret@database.example.com/svc?sslmode=verify-full'
      const loaded = loadSettings({
        cwd: '/',
        readFile: (path) => {
          t.is(path, '/etc/svc/svc.toml')
          return toml
        },
        environment: {
          ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
          // What the Secret of the example holds.
          DATABASE_URL: url,
          DATABASE_IDENTITY_URL: url,
          DATABASE_LISTENER_URL: url,
          SVC_CHALLENGE__CAPTCHA_SECRET: 'captcha-secret-of-an-example',
          SVC_CHALLENGE__CAPTCHA_PROVIDER: 'pow',
          SVC_SERVER__METRICS_BEARER_TOKEN: 'a-metrics-token-of-some-length',
        },
      })
      t.deepEqual(loaded.tag === 'refused' ? loaded.failures : [], [])
    }
  })
}

rendering(`a chart without a configuration is refused with a reason${why}`, (t) => {
  const empty = join(folder, 'empty.yaml')
  writeFileSync(empty, 'image: {repository: svc}\n')
  const error = t.throws(() => render(empty))
  t.regex(String(error), /config is empty/)
})

rendering(`the ingress sends every route to a plane that serves it${why}`, (t) => {
  const objects = render(join(CHART, 'examples/production.yaml'))
  const ingress = objects.find(({ kind }) => kind === 'Ingress')!
  type Path = { path: string; backend: { service: { name: string } } }
  const { rules } = ingress.spec as unknown as { rules: { http: { paths: Path[] } }[] }
  const planes = new Map(
    placements.map(({ definition, planes: served }) => [
      definition.address.name,
      served as readonly string[],
    ]),
  )
  const { paths } = rules[0]!.http
  const planeOf = (path: string) => {
    const fits = paths.filter(
      (one) => one.path === '/' || path === one.path || path.startsWith(`${one.path}/`),
    )
    const [longest] = fits.toSorted((a, b) => b.path.length - a.path.length)
    return basename(longest!.backend.service.name).replace('id-', '')
  }
  const misrouted = routes.flatMap(({ path, target }) => {
    if (target.via === 'gateway') return []
    const served = planes.get(target.address.name) ?? []
    return served.includes(planeOf(path)) ? [] : [`${path} is served by ${served.join(', ')}`]
  })
  t.deepEqual(misrouted, [])
})

rendering(`the egress address is a port of auth alone, and has its host${why}`, (t) => {
  const objects = render(join(CHART, 'examples/production.yaml'))
  type Ports = { ports: { name: string; targetPort: string }[] }
  const services = objects.filter(({ kind }) => kind === 'Service')
  for (const { metadata, spec } of services) {
    const names = (spec as unknown as Ports).ports.map(({ name }) => name)
    t.deepEqual(names, metadata.name === 'id-auth' ? ['http', 'egress'] : ['http'])
  }
  for (const { containers } of podsOf(objects.filter(({ kind }) => kind === 'Deployment'))) {
    const { env = [], ports = [] } = containers.find(({ name }) => name === 'svc')!
    const valueOf = (wanted: string) => env.find(({ name }) => name === wanted)?.value
    const egress = ports.find(({ name }) => name === 'egress')
    t.is(valueOf('SVC_SERVER__EGRESS_PORT'), '8444')
    t.is(egress?.containerPort, valueOf('SVC_RUNTIME_PLANE') === 'auth' ? 8_444 : undefined)
  }
  type Rule = { host: string; http: { paths: { path: string; backend: { service: unknown } }[] } }
  const ingress = objects.find(({ kind }) => kind === 'Ingress')!
  const { rules } = ingress.spec as unknown as { rules: Rule[] }
  const rule = rules.find(({ host }) => host === 'egress.example.com')
  const service = { name: 'id-auth', port: { name: 'egress' } }
  t.like(rule?.http.paths[0], { path: '/', backend: { service } })
  t.true(JSON.stringify(objects.find(({ kind }) => kind === 'NetworkPolicy')).includes('"egress"}'))
})

test('a misspelled member of an object is a fault', (t) => {
  const container = { name: 'a', imagePullPolcy: 'Always' }
  const faults = faultsOf({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'x' },
    spec: { selector: {}, template: { spec: { containers: [container] } }, replicas: '2' },
  } as never)
  t.deepEqual(faults, [
    'data/spec/replicas must be integer',
    'Deployment.spec.template.spec.containers[0].imagePullPolcy does not exist',
  ])
})

test('the chart has the version of the package', (t) => {
  const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as Record<string, string>
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    version: string
  }
  t.is(chart['appVersion'], version)
  t.is(chart['version'], version)
})
