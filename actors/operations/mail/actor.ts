/** Sends mail in the async plane. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { notify, type NotifyProtocol } from './protocol.js'
import type { MailWorker } from './worker.js'

export type NotifyNeeds = { readonly worker: MailWorker }

export const notifyActor = defineActor<NotifyProtocol, NotifyNeeds>({
  address: notify,
  asks: {},
  mailbox: { capacity: 64, inflightMax: 8 },
  lane: { busy: () => undefined },
  create: ({ worker }, lifecycle) => {
    worker.start(lifecycle)
    return { busy: async () => ({ tag: 'busy', sending: worker.sending }) }
  },
})
