/** Requests that people decide elsewhere than where they were made. RFC 8628; decisions.md 7.3. */
import type { Registry } from 'prom-client'
import { defineActor } from '../../../runtime/kernel/actor.js'
import { browserSessions } from '../../identity/sessions/protocol.js'
import { keys } from '../signing-keys/protocol.js'
import { tenants } from '../../identity/tenants/protocol.js'
import { tokens } from '../tokens/protocol.js'
import { refuseGone } from '../tokens/refusals.js'
import { type CibaNeeds, startCiba } from './ciba.js'
import { decideDevice, type DeviceNeeds, showDevice, startDevice } from './device.js'
import { answerInbox, decideInInbox, type InboxNeeds, listFor, showInbox } from './inbox.js'
import { backchannelMetrics } from './metrics.js'
import { backchannel, type BackchannelProtocol } from './protocol.js'

export type BackchannelNeeds = Omit<DeviceNeeds & CibaNeeds & InboxNeeds, 'metrics'> & {
  readonly registry: Registry
}

export const backchannelActor = defineActor<BackchannelProtocol, BackchannelNeeds>({
  address: backchannel,
  asks: { sessions: browserSessions, tenants, tokens, keys },
  mailbox: { capacity: 2048, inflightMax: 256 },
  lane: {
    startDevice: () => undefined,
    showDevice: () => undefined,
    decideDevice: () => undefined,
    startCiba: () => undefined,
    listInbox: () => undefined,
    decideInInbox: ({ requestId }) => requestId,
    showInbox: () => undefined,
    answerInbox: ({ requestId }) => requestId,
  },
  // A failure is one statement's or one request's: there is no state that a restart would mend.
  supervision: { onFailure: 'resume' },
  create: ({ registry, ...rest }) => {
    const needs = { ...rest, metrics: backchannelMetrics(registry) }
    return {
      startDevice: (message, turn) =>
        startDevice(needs, message, turn).catch((error) => refuseGone(error, message.request)),
      showDevice: (message, turn) => showDevice(needs, message, turn),
      decideDevice: (message, turn) => decideDevice(needs, message, turn),
      startCiba: (message, turn) =>
        startCiba(needs, message, turn).catch((error) => refuseGone(error, message)),
      listInbox({ person }, turn) {
        return listFor(needs, person, turn)
      },
      decideInInbox: (message, turn) => decideInInbox(needs, message, turn),
      showInbox: (message, turn) => showInbox(needs, message, turn),
      answerInbox: (message, turn) => answerInbox(needs, message, turn),
    }
  },
})
