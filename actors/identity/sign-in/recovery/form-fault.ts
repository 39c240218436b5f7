/** What refuses a form that sends a mail: the CAPTCHA and the quota. */
import { orBusy } from '../limits/lockout.js'
import type { Busy, CaptchaAway, CaptchaWanted, Locked } from '../protocol.js'
import type { PasswordRecoveryTools } from './needs.js'
import type { ForgotShown, RequestReset } from './protocol.js'

/** Undefined: the mail may be sent. `name` is what the quota counts besides the network address. */
export function formFault(
  { gate, quota }: Pick<PasswordRecoveryTools, 'gate' | 'quota'>,
  shown: ForgotShown,
  { captcha, visitor: { address } }: Pick<RequestReset, 'captcha' | 'visitor'>,
  name: string,
  own?: () => Promise<string | null>,
): Promise<(ForgotShown & (CaptchaWanted | Locked)) | CaptchaAway | Busy | undefined> {
  return orBusy(async () => {
    const judged = await gate.judge(captcha, address)
    if (judged.tag === 'captcha') return { ...shown, ...judged }
    if (judged.tag !== 'open') return judged
    const allowed = await quota.ask(name, address, own)
    return allowed.tag === 'locked' ? { ...shown, ...allowed } : undefined
  })
}
