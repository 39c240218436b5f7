/** The mail worker runs on its own. Its one message reports how busy it is. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type MailProtocol = {
  /** Number of messages that this process is sending. */
  busy: Ask<Record<never, never>, { tag: 'busy'; sending: number }>
}

export const mail = address<MailProtocol>('notify', ['busy'])
