/** Exit status, proxy access and cleanup of `svc run` (docs/guides/vault/svc-run.md). */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { until } from '../../support/service/watch.js'
import { ownEgressHouse, settingOf, UPSTREAM_NAME } from '../../support/vault/egress.js'
import { svcRunOf } from '../../support/vault/svc-run.js'

const resources = await ownEgressHouse()
const setting = await settingOf(resources)
const svcRun = await svcRunOf(resources, { delegated: setting.direct })
const named = ['--credential', `${UPSTREAM_NAME}=${setting.credentialId}`]
const access = ['--url', resources.running.baseUrl, '--token-file', svcRun.tokenFile, ...named]
const runs = join(svcRun.home, '.svc', 'run')
test.after.always(async () => {
  await svcRun.end()
  await resources.end()
})

test.serial('exit codes and signals come from the program', async (t) => {
  t.is((await svcRun.run(named, ['sh', '-c', 'exit 7'])).code, 7)
  t.is((await svcRun.run(named, ['sh', '-c', 'kill -TERM $$'])).signal, 'SIGTERM')
  t.is((await svcRun.run(named, ['sh', '-c', 'kill -KILL $$'])).signal, 'SIGKILL')
  const absent = await svcRun.run(named, ['no-such-program'])
  t.is(absent.code, 127)
  t.regex(absent.err, /no-such-program: ENOENT/)
  t.is((await svcRun.run(named, ['/'])).code, 126)
  for (const [signal, code] of [
    ['SIGTERM', 3],
    ['SIGINT', 4],
    ['SIGHUP', 5],
  ] as const) {
    const script = `trap 'exit 3' TERM; trap 'exit 4' INT; trap 'exit 5' HUP; echo up
      while :; do sleep 0.1; done`
    const running = svcRun.begin(['run', ...access, '--', 'sh', '-c', script])
    await running.printed(/up/)
    running.child.kill(signal)
    t.is((await running.ended).code, code, signal)
  }
  t.deepEqual(readdirSync(runs), [])
})

test.serial('options after the program belong to the program', async (t) => {
  const { out } = await svcRun.run(named, ['echo', '--verbose', '--url', 'x', '--', '-h'])
  t.is(out, '--verbose --url x -- -h\n')
})

test.serial('only the program can use the proxy', async (t) => {
  const running = svcRun.begin([
    'run',
    ...access,
    '--',
    'sh',
    '-c',
    'echo $HTTPS_PROXY; exec sleep 60',
  ])
  const proxy = new URL((await running.printed(/\n/)).trim())
  t.is(proxy.hostname, '127.0.0.1')
  const authority = `${UPSTREAM_NAME}:443`
  const statusOf = (method: string, path: string, login?: string) =>
    new Promise<number>((resolve, reject) => {
      const asked = request({
        host: proxy.hostname,
        port: proxy.port,
        method,
        path,
        headers: login === undefined ? {} : { 'proxy-authorization': `Basic ${btoa(login)}` },
      })
      const answered = ({ statusCode }: { statusCode?: number | undefined }) => {
        resolve(statusCode ?? 0)
        asked.destroy()
      }
      asked.once('response', answered).once('connect', answered).once('error', reject).end()
    })
  t.is(await statusOf('CONNECT', authority), 407)
  t.is(await statusOf('CONNECT', authority, 'svc:guess'), 407)
  t.is(await statusOf('GET', `https://${authority}/`), 407)
  const login = `${proxy.username}:${proxy.password}`
  t.is(await statusOf('CONNECT', authority, login), 200)
  for (const ugly of ['a/b:443', 'a b', '@:1', 'x:y', '[::1', 'host:99999']) {
    t.is(await statusOf('CONNECT', encodeURI(ugly), login), 400, ugly)
  }
  t.is(await statusOf('GET', '/', login), 400)
  t.is(await statusOf('GET', 'ftp://a.example/', login), 400)
  running.child.kill('SIGTERM')
  t.is((await running.ended).signal, 'SIGTERM')
})

test.serial(
  'a killed run leaves a certificate without key, which the next run removes',
  async (t) => {
    const script = 'echo $$; exec sleep 30'
    const running = svcRun.begin(['run', ...access, '--', 'sh', '-c', script])
    const pid = Number(await running.printed(/\n/))
    t.teardown(() => {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // The run has ended.
      }
    })
    const [name] = readdirSync(runs)
    const file = join(runs, name!, 'certificates.pem')
    t.is(statSync(file).mode & 0o777, 0o600)
    t.is(statSync(join(runs, name!)).mode & 0o777, 0o700)
    t.deepEqual(readdirSync(join(runs, name!)), ['certificates.pem', 'php', 'wgetrc'])
    for (const left of [file, join(runs, name!, 'wgetrc'), join(runs, name!, 'php', 'svc.ini')]) {
      t.false(readFileSync(left, 'utf8').includes('PRIVATE'), left)
    }
    // Another run keeps the folder of a running one.
    t.is((await svcRun.run(named, ['true'])).code, 0)
    t.deepEqual(readdirSync(runs), [name!])
    running.child.kill('SIGKILL')
    await new Promise((resolve) => running.child.once('exit', resolve))
    await sleep(50)
    t.deepEqual(readdirSync(runs), [name!])
    t.is((await svcRun.run(named, ['true'])).code, 0)
    t.deepEqual(readdirSync(runs), [])
  },
)

test.serial('a running response completes during a shutdown', async (t) => {
  const resources = await ownEgressHouse({ transport: 'tls_h2_only' })
  t.teardown(() => resources.end())
  const { api, running, upstream } = resources
  const setting = await settingOf(resources)
  const svcRun = await svcRunOf(resources, { delegated: setting.direct })
  t.teardown(() => svcRun.end())
  const ownAccess = ['--url', running.baseUrl, '--token-file', svcRun.tokenFile]
  const ownNamed = ['--credential', `${UPSTREAM_NAME}=${setting.credentialId}`]
  const command = ['curl', '-sSN', `${upstream.origin}/pause/held`]
  const ran = svcRun.begin(['run', ...ownAccess, ...ownNamed, '--', ...command])
  await ran.printed(/before/)
  const stopped = running.service.stop()
  const isStopping = () =>
    api.get('/health/ready').then(
      ({ status }) => status !== 200,
      () => true,
    )
  await until('the service is stopping', isStopping)
  upstream.releaseEvents()
  await stopped
  const { code, out, err } = await ran.ended
  t.is(out, 'before data: now\n\n', err)
  t.is(code, 0)
})
