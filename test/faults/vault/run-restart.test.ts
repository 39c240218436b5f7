/** Graceful shutdown of the service during a call of `svc run`. */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { egressHouse, settingOf, UPSTREAM_NAME } from '../../support/vault/egress.js'
import { svcRunOf } from '../../support/vault/svc-run.js'

test('a running response completes during a shutdown', async (t) => {
  const resources = await egressHouse({ transport: 'tls_h2_only' })
  t.teardown(() => resources.end())
  const setting = await settingOf(resources)
  const svcRun = await svcRunOf(resources, { delegated: setting.direct })
  t.teardown(() => svcRun.end())
  const before = resources.upstream.requests.length
  const ran = svcRun.run(
    ['--credential', `${UPSTREAM_NAME}=${setting.credentialId}`],
    ['curl', '-sS', '--no-buffer', `${resources.upstream.origin}/pause/4000`],
  )
  while (resources.upstream.requests.length === before) await sleep(20)
  await sleep(500)
  await resources.running.service.stop()
  const { code, out, err } = await ran
  t.is(out, 'before after', err)
  t.is(code, 0)
})
