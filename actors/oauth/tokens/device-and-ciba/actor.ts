/** The device grant (RFC 8628) and CIBA: requests that the user decides on another device. */
import type { Registry } from 'prom-client'
import { boundHandlers, defineActor } from '../../../../runtime/kernel/actor.js'
import { browserSessions } from '../../../identity/sign-in/sessions/protocol.js'
import { signingKeys } from '../../signing-keys/protocol.js'
import { tenants } from '../../../identity/users/tenants/protocol.js'
import { tokens } from '../protocol.js'
import { refuseGone } from '../refusals.js'
import { type CibaNeeds, authorizeBackchannel } from './ciba.js'
import {
  verifyDevice,
  type DeviceNeeds,
  showDeviceVerification,
  authorizeDevice,
} from './device.js'
import {
  answerInbox,
  approveBackchannelRequest,
  denyBackchannelRequest,
  type InboxNeeds,
  listBackchannelRequests,
  showInbox,
} from './inbox.js'
import { backchannelMetrics } from './metrics.js'
import { backchannel, type BackchannelProtocol } from './protocol.js'

type BackchannelNeeds = Omit<DeviceNeeds & CibaNeeds & InboxNeeds, 'metrics'> & {
  readonly registry: Registry
}

export const backchannelActor = defineActor<BackchannelProtocol, BackchannelNeeds>({
  address: backchannel,
  asks: { sessions: browserSessions, tenants, tokens, keys: signingKeys },
  mailbox: { capacity: 2048, inflightMax: 256 },
  lane: {
    approveBackchannelRequest: ({ requestId }) => requestId,
    denyBackchannelRequest: ({ requestId }) => requestId,
    answerInbox: ({ requestId }) => requestId,
  },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ registry, ...rest }) =>
    boundHandlers<BackchannelProtocol, DeviceNeeds & CibaNeeds & InboxNeeds>(
      {
        authorizeDevice: (needs, message, context) =>
          authorizeDevice(needs, message, context).catch(refuseGone),
        showDeviceVerification,
        verifyDevice,
        authorizeBackchannel: (needs, message, context) =>
          authorizeBackchannel(needs, message, context).catch(refuseGone),
        listBackchannelRequests,
        approveBackchannelRequest,
        denyBackchannelRequest,
        showInbox,
        answerInbox,
      },
      { ...rest, metrics: backchannelMetrics(registry) },
    ),
})
