/** Streams of security events of a tenant's receivers. The async plane writes their events. */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import { FairShare } from '../../../runtime/kernel/fairness/fair-share.js'
import { signingKeys } from '../../oauth/signing-keys/protocol.js'
import type { SignalsNeeds, SignalsTools } from './needs.js'
import { pollSignalEvents, WAITS } from './poll.js'
import { signals, type SignalsProtocol } from './protocol.js'
import {
  createSignalStream,
  deleteSignalStream,
  readSignalStreams,
  readSignalStreamStatus,
  replaceSignalStream,
  updateSignalStream,
  updateSignalStreamStatus,
  verifySignalStream,
} from './streams.js'
import { addSignalSubject, removeSignalSubject } from './subjects.js'

export const signalsActor = defineActor<SignalsProtocol, SignalsNeeds>({
  address: signals,
  asks: { keys: signingKeys },
  // Most of what is in progress are polls that wait.
  mailbox: { capacity: 1_024, inflightMax: 2 * WAITS.total },
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<SignalsProtocol, SignalsTools>(
      {
        createSignalStream,
        readSignalStreams,
        updateSignalStream,
        replaceSignalStream,
        deleteSignalStream,
        readSignalStreamStatus,
        updateSignalStreamStatus,
        addSignalSubject,
        removeSignalSubject,
        verifySignalStream,
        pollSignalEvents,
      },
      {
        ...needs,
        waits: new FairShare({
          resource: 'signal_polls',
          total: WAITS.total,
          levels: [
            { name: 'tenant', max: WAITS.tenant },
            { name: 'stream', max: WAITS.stream },
          ],
          counts: needs.shares,
        }),
      },
    ),
})
