/** All hosted pages in all visually different states, in gallery order. */

export type Picture = {
  /** The template that is rendered: `data-page` of the page. */
  readonly page: string
  /** Caption in docs/guides/identity/hosted-pages.md. */
  readonly words: string
}

const shown = <const Name extends string>(
  name: Name,
  words: string,
  page: string = name,
): readonly [Name, Picture] => [name, { page, words }]

const LIST = [
  shown('sign-in', 'sign-in, every way turned on', 'login'),
  shown('sign-in-wrong', 'a wrong pair', 'login'),
  shown('sign-in-locked', 'too many attempts', 'login'),
  shown('mail-sent', 'code and link by mail'),
  shown('mail-wrong', 'a wrong code', 'mail-sent'),
  shown('mail-link', 'link by mail', 'link'),
  shown('link-gone', 'a link that was used', 'notice'),
  shown('forgot', 'forgotten password'),
  shown('password-reset', 'new password'),
  shown('password-weak', 'a password that will not do', 'password-reset'),
  shown('password-done', 'password saved'),
  shown('invitation', 'invitation to a tenant'),
  shown('invite', 'invite of an operator'),
  shown('invite-sent', 'invite: a letter is on its way'),
  shown('invite-letter', 'invite: from the letter'),
  shown('sso-confirm', 'sign-in with a provider, asked for elsewhere'),
  shown('provider-away', 'on the way to another provider', 'onward'),
  shown('provider-refused', 'not a member', 'error'),
  shown('account-new', 'account, nothing set up', 'account'),
  shown('email-sent', 'letter to confirm an address', 'notice'),
  shown('email-confirm', 'confirmation of an address'),
  shown('password-change', 'change of password'),
  shown('enrolment', 'second step: enrolment', 'enroll'),
  shown('enrolment-wrong', 'a code that is not valid', 'enroll'),
  shown('recovery-codes', 'recovery codes', 'codes'),
  shown('passkey-new', 'new passkey'),
  shown('second-factor', 'second step', 'mfa'),
  shown('second-factor-wrong', 'a wrong code', 'mfa'),
  shown('authenticator-new', 'authenticator app beside a passkey', 'totp-new'),
  shown('enrolment-device', 'enrolment for aal3', 'enroll'),
  shown('consent', 'consent'),
  shown('consent-details', 'consent with authorization_details', 'consent'),
  shown('authorize-refused', 'a request that cannot be answered', 'refused'),
  shown('device', 'device: code', 'device-code'),
  shown('device-unknown', 'a wrong code', 'device-code'),
  shown('device-confirm', 'device: question'),
  shown('device-approved', 'device connected', 'device-decided'),
  shown('device-denied', 'device not connected', 'device-decided'),
  shown('inbox', 'requests to answer', 'inbox'),
  shown('inbox-approved', 'request allowed', 'inbox-decided'),
  shown('inbox-empty', 'nothing to answer', 'inbox'),
  shown('delegation', 'an agent asks', 'delegation'),
  shown('delegation-approved', 'the agent may act', 'delegation-decided'),
  shown('delegation-denied', 'the agent may not act', 'delegation-decided'),
  shown('account', 'account, everything set up'),
  shown('signed-out', 'signed out', 'logout'),
  shown('signed-out-by-application', 'signed out by an application', 'signed-out'),
  shown('pay-link', 'payment link'),
  shown('pay', 'payment'),
  shown('paid', 'paid', 'pay'),
  shown('declined', 'declined', 'pay'),
  shown('error', 'a sign-in that ran out'),
  shown('error-unknown', 'an unknown address', 'error'),
  shown('home', 'the start page'),
  shown('problem-type', 'the page of a problem type'),
] as const

export type PictureName = (typeof LIST)[number][0]
/** Called for each page of a walk. */
export type See = (name: PictureName) => Promise<void>
export const PICTURES: ReadonlyMap<string, Picture> = new Map(LIST)
export const SCHEMES = ['light', 'dark'] as const
export const PICTURE_FOLDER = 'docs/pictures'
