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
  shown('sign-in', 'sign-in, all methods enabled', 'login'),
  shown('sign-in-wrong', 'wrong email or password', 'login'),
  shown('sign-in-locked', 'too many attempts', 'login'),
  shown('mail-sent', 'code and link by mail'),
  shown('mail-wrong', 'a wrong code', 'mail-sent'),
  shown('mail-link', 'link by mail', 'link'),
  shown('link-gone', 'a link that was used', 'notice'),
  shown('register', 'sign-up'),
  shown('register-sent', 'sign-up: mail sent'),
  shown('register-link', 'sign-up: link of the mail'),
  shown('register-closed', 'a tenant without sign-up', 'notice'),
  shown('phone', 'sign-in by phone', 'phone-number'),
  shown('phone-code', 'code by text message'),
  shown('ethereum', 'sign-in with Ethereum', 'wallet'),
  shown('account-guest', 'account of a guest', 'account'),
  shown('guest-address', 'a guest adds an address'),
  shown('guest-code', 'code that keeps the account of a guest'),
  shown('forgot', 'forgot password'),
  shown('password-reset', 'new password'),
  shown('password-weak', 'an invalid password', 'password-reset'),
  shown('password-done', 'password saved'),
  shown('invitation', 'invitation to a tenant'),
  shown('invite', 'invite of an operator'),
  shown('invite-sent', 'invite: mail sent'),
  shown('invite-letter', 'invite: link of the mail'),
  shown('sso-confirm', 'federated sign-in: confirmation'),
  shown('provider-away', 'federated sign-in: redirect', 'onward'),
  shown('provider-refused', 'not a member', 'error'),
  shown('account-new', 'account, nothing set up', 'account'),
  shown('email-sent', 'verification mail sent', 'notice'),
  shown('email-confirm', 'email verification'),
  shown('password-change', 'password change'),
  shown('enrolment', 'second factor: enrolment', 'enroll'),
  shown('enrolment-wrong', 'a code that is not valid', 'enroll'),
  shown('recovery-codes', 'recovery codes', 'codes'),
  shown('passkey-new', 'new passkey'),
  shown('second-factor', 'second factor', 'mfa'),
  shown('second-factor-wrong', 'a wrong code', 'mfa'),
  shown('authenticator-new', 'authenticator app for an account with a passkey', 'totp-new'),
  shown('enrolment-device', 'enrolment for aal3', 'enroll'),
  shown('accounts', 'choice of an account', 'accounts'),
  shown('consent', 'consent'),
  shown('answered-before', 'a consent that was given before'),
  shown('consent-details', 'consent with authorization_details', 'consent'),
  shown('authorize-refused', 'an invalid authorization request', 'refused'),
  shown('credential-offer', 'credential offer with a transaction code'),
  shown('device', 'device: code', 'device-code'),
  shown('device-unknown', 'a wrong code', 'device-code'),
  shown('device-confirm', 'device: confirmation'),
  shown('device-approved', 'device connected', 'device-decided'),
  shown('device-denied', 'device not connected', 'device-decided'),
  shown('inbox', 'CIBA inbox', 'inbox'),
  shown('inbox-approved', 'CIBA request approved', 'inbox-decided'),
  shown('inbox-empty', 'CIBA inbox, empty', 'inbox'),
  shown('delegation', 'agent delegation request', 'delegation'),
  shown('delegation-approved', 'agent delegation approved', 'delegation-decided'),
  shown('delegation-denied', 'agent delegation denied', 'delegation-decided'),
  shown('account', 'account with everything set up'),
  shown('signed-out', 'signed out', 'logout'),
  shown('signed-out-by-application', 'signed out by an application', 'signed-out'),
  shown('pay-link', 'payment link'),
  shown('pay', 'payment'),
  shown('paid', 'paid', 'pay'),
  shown('declined', 'declined', 'pay'),
  shown('error', 'expired sign-in'),
  shown('error-unknown', 'unknown page', 'error'),
  shown('home', 'the start page'),
  shown('problem-type', 'the page of a problem type'),
  shown('problem-types', 'all problem types'),
  shown('oauth-error', 'the page of an OAuth error'),
  shown('dev-mail', 'mails of a development service'),
  shown('dev-mail-message', 'a mail of a development service'),
] as const

export type PictureName = (typeof LIST)[number][0]
/** Called for each page of a walk. */
export type See = (name: PictureName) => Promise<void>
export const PICTURES: ReadonlyMap<string, Picture> = new Map(LIST)
/** Pages that a wide window shows in two columns. */
export const WIDE: ReadonlySet<PictureName> = new Set(['account', 'account-new'])
export const SCHEMES = ['light', 'dark'] as const
export const PICTURE_FOLDER = 'docs/pictures'
