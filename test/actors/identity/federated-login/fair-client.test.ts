/** Sign-ins that wait for the providers of tenants, within their share. */
import test from 'ava'
import type {
  UpstreamClient,
  UpstreamFault,
} from '../../../../actors/identity/federated-login/client.js'
import { fairClient } from '../../../../actors/identity/federated-login/fair-client.js'
import type { Provider } from '../../../../actors/identity/federated-login/providers.js'
import { ShareCounts } from '../../../../runtime/kernel/fairness/fair-share.js'

type Sent = Parameters<UpstreamClient['finish']>
const rest = [{}, new URLSearchParams()] as unknown as [Sent[1], Sent[2]]
const of = (tenantId: string | null) => ({ tenantId }) as Provider

/** A client whose providers answer when the test says so. */
function stage() {
  const waiting: string[] = []
  let answer: (fault: UpstreamFault) => void = () => undefined
  const answered = new Promise<UpstreamFault>((resolve) => (answer = resolve))
  const silent: Pick<UpstreamClient, 'finish'> = {
    finish: ({ tenantId }: Provider) => {
      waiting.push(tenantId ?? '')
      return answered
    },
  }
  const groups = { of: () => [{ name: 'sandboxes', part: 1 / 2 }] }
  const client = fairClient(silent as UpstreamClient, groups, new ShareCounts())
  const signIns = (tenantId: string | null, count: number) =>
    Array.from({ length: count }, () => client.finish(of(tenantId), ...rest))
  return { waiting, answer, signIns }
}
const DENIED = { tag: 'fault', fault: 'denied', detail: 'at last' } as const
const BUSY = { tag: 'fault', fault: 'unavailable', detail: 'share_exhausted' } as const

test('a tenant with a silent provider holds 24 sign-ins, and further ones fail at once', async (t) => {
  const { waiting, answer, signIns } = stage()
  const hostile = signIns('hostile', 40)
  for (const over of hostile.slice(24)) t.deepEqual(await over, BUSY)
  const honest = signIns('honest', 1)
  answer(DENIED)
  for (const ended of [...hostile.slice(0, 24), ...honest]) t.deepEqual(await ended, DENIED)
  t.is(waiting.length, 25)
})

test('a tenant without a place takes one from a group that holds half of them', async (t) => {
  const { waiting, answer, signIns } = stage()
  const hostile = ['a', 'b', 'c', 'd'].map((tenant) => signIns(tenant, 24))
  const [honest] = signIns('honest', 1)
  // The oldest of the largest holder made room.
  t.deepEqual(await hostile[0]![0], BUSY)
  t.true(waiting.includes('honest'))
  answer(DENIED)
  t.deepEqual(await honest, DENIED)
})

test('providers of the deployment are not bounded', async (t) => {
  const { answer, signIns } = stage()
  const all = signIns(null, 250)
  answer(DENIED)
  for (const ended of all) t.deepEqual(await ended, DENIED)
})
