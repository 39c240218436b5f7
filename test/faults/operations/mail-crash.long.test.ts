/** kill -9 while mail is being sent: each message arrives, and none is lost. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { processesOf, svc } from '../../flows/vault/command.js'
import { bootstrap, callerOf, demand } from '../../support/agents/journey.js'
import { openMailServer } from '../../support/operations/mail.js'
import { freePort } from '../../support/service.js'

const KILLS = 3
const LETTERS_EACH = 6
const WITHIN_MS = 90_000

test(`${KILLS} kills mid-send lose no acknowledged message`, async (t) => {
  t.timeout(240_000)
  const folder = mkdtempSync(join(tmpdir(), 'svc-mail-kill-'))
  chmodSync(folder, 0o711)
  const sending = { begun: 0, holding: true }
  // While it holds, a sender is always in the middle of its message.
  const mail = await openMailServer({
    onMessage: async () => {
      sending.begun += 1
      while (sending.holding) await sleep(50)
    },
  })
  t.teardown(async () => {
    sending.holding = false
    for (const line of processesOf(folder)) process.kill(Number.parseInt(line, 10), 'SIGKILL')
    await mail.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const port = await freePort()
  const serve = async () => {
    const service = svc(t, {
      environment: {
        ...mail.environment,
        SVC_DATA_DIR: folder,
        SVC_SERVER__PORT: String(port),
        SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
        SVC_INVITATIONS__ENABLED: 'true',
        SVC_EMAIL__RETRY_SCHEDULE_SECS: '[1, 1, 1, 1, 1, 1, 1, 1]',
        SVC_CHALLENGE__POW_DIFFICULTY_BITS: '4',
        SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
      },
    })
    await service.ready()
    return service
  }
  const http = callerOf(`http://localhost:${port}`)
  const written: string[] = []
  for (let kill = 0; kill < KILLS; kill += 1) {
    const service = await serve()
    const before = sending.begun
    const { accessToken } = await bootstrap(http)
    const authorization = `Bearer ${accessToken}`
    for (let n = 0; n < LETTERS_EACH; n += 1) {
      const email = `person-${kill}-${n}@harbour.works`
      demand(await http.post('/api/v1/tenant-users', { email }, { authorization }), 201)
      written.push(email)
    }
    const endMs = Date.now() + WITHIN_MS
    while (sending.begun === before && Date.now() < endMs) await sleep(20)
    t.true(sending.begun > before, 'a letter was in the middle of being sent')
    service.child.kill('SIGKILL')
    t.is(await service.ended(), 'SIGKILL')
  }
  sending.holding = false
  const last = await serve()
  const arrived = () => new Set(mail.received.flatMap(({ to }) => to))
  const endMs = Date.now() + WITHIN_MS
  while (arrived().size < written.length && Date.now() < endMs) await sleep(100)
  t.deepEqual([...arrived()].toSorted(), written.toSorted())
  const copies = new Set(mail.received.map(({ to, headers }) => to[0] + headers['message-id']!))
  t.is(copies.size, written.length, 'copies carry one Message-ID')
  t.log(`${written.length} letters, ${mail.received.length} arrivals`)
  last.child.kill('SIGTERM')
  t.is(await last.ended(), 0)
})
