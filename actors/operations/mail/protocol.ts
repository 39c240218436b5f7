/** The actor that sends mail works by itself; it may be asked how busy it is. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type NotifyProtocol = {
  /** Letters that are being sent at this moment by this process. */
  busy: Ask<Record<never, never>, { tag: 'busy'; sending: number }>
}

export const notify = address<NotifyProtocol>('notify', ['busy'])
