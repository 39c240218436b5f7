/** The device grant (RFC 8628) and CIBA: requests that the user decides on another device. */
import type { Registry } from 'prom-client'
import { defineActor } from '../../../runtime/kernel/actor.js'
import { browserSessions } from '../../identity/sessions/protocol.js'
import { signingKeys } from '../signing-keys/protocol.js'
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
  asks: { sessions: browserSessions, tenants, tokens, keys: signingKeys },
  mailbox: { capacity: 2048, inflightMax: 256 },
  lane: {
    decideInInbox: ({ requestId }) => requestId,
    answerInbox: ({ requestId }) => requestId,
  },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ registry, ...rest }) => {
    const needs = { ...rest, metrics: backchannelMetrics(registry) }
    return {
      startDevice: (message, context) =>
        startDevice(needs, message, context).catch((error) => refuseGone(error, message)),
      showDevice: (message, context) => showDevice(needs, message, context),
      decideDevice: (message, context) => decideDevice(needs, message, context),
      startCiba: (message, context) =>
        startCiba(needs, message, context).catch((error) => refuseGone(error, message)),
      listInbox({ person }, context) {
        return listFor(needs, person, context)
      },
      decideInInbox: (message, context) => decideInInbox(needs, message, context),
      showInbox: (message, context) => showInbox(needs, message, context),
      answerInbox: (message, context) => answerInbox(needs, message, context),
    }
  },
})
