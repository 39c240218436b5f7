/** Streams of security events of a tenant's receivers. The async plane writes their events. */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import { FairShare } from '../../../runtime/kernel/fairness/fair-share.js'
import { signingKeys } from '../../oauth/signing-keys/protocol.js'
import type { SignalsNeeds, SignalsTools } from './needs.js'
import { pollSignalEvents, SIGNING, WAITS } from './poll.js'
import { signals, type SignalsProtocol } from './protocol.js'
import { KeptSets } from './set.js'
import { WaitingStreams } from './waiting-streams.js'
import {
  createSignalStream,
  deleteSignalStream,
  listSignalStreams,
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
        listSignalStreams,
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
        waits: shareOf('signal_polls', WAITS, needs),
        signing: shareOf('signal_signatures', SIGNING, needs),
        kept: new KeptSets(needs.clock),
        waiting: new WaitingStreams(needs),
      },
    ),
})

const shareOf = (
  resource: string,
  { total, tenant, stream }: typeof WAITS | typeof SIGNING,
  { shares: counts }: Pick<SignalsNeeds, 'shares'>,
): FairShare => {
  const levels = [
    { name: 'tenant', max: tenant },
    { name: 'stream', max: stream },
  ]
  return new FairShare({ resource, total, levels, counts })
}
