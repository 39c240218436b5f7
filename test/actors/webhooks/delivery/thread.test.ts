import test from 'ava'
import { deliveriesActor } from '../../../../actors/webhooks/delivery/actor.js'
import { deliveries } from '../../../../actors/webhooks/delivery/protocol.js'
import { spawnThread } from '../../../../runtime/kernel/threads/thread.js'
import { contract } from '../../../vectors/contract.js'

test('the signer on a thread gives the published signature', async (t) => {
  const thread = await spawnThread({
    name: 'engines',
    entry: new URL('./placements.js', import.meta.url),
    definitions: [deliveriesActor],
  })
  t.teardown(() => thread.stop())
  const { webhook } = contract
  const outcome = await thread.ref(deliveries).ask('sign', {
    secret: webhook.secret,
    previousSecret: null,
    timestampSecs: webhook.timestamp,
    maxAgeSecs: webhook.max_age,
    deliveryId: webhook.delivery_id,
    eventType: webhook.event_type,
    payload: new Uint8Array(Buffer.from(webhook.body)),
  })
  t.is(outcome.tag, 'signed')
  if (outcome.tag === 'signed') t.is(outcome.headers['x-svc-signature-256'], webhook.signature_256)
})
