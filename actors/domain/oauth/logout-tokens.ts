/** Names of logout tokens (OpenID Connect Back-Channel Logout 1.0 section 2.4). */

export const LOGOUT_TOKEN_TYPE = 'logout+jwt'
export const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'
