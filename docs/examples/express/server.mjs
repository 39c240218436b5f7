/**
 * An Express API that accepts access tokens of svc, and receives its webhooks.
 *
 *     ISSUER=http://localhost:8080 AUDIENCE=urn:svc:application:... TENANT_ID=... WEBHOOK_SECRET=... node server.mjs
 */
import express from 'express'
import {
  InsufficientScope,
  InvalidToken,
  InvalidWebhook,
  verifyToken,
  verifyWebhook,
} from '@svc/client'

const { ISSUER, AUDIENCE, TENANT_ID, WEBHOOK_SECRET, PORT = '3000' } = process.env
// One object for all requests: the keys of the issuer are cached with it.
const accepted = {
  issuer: ISSUER,
  audience: AUDIENCE,
  tenantId: TENANT_ID,
  scopes: ['applications:read'],
}

/** Middleware: puts the claims of a valid access token into `request.caller`. */
async function authenticated(request, response, next) {
  const [, token] = /^bearer ([\w.~+/-]+=*)$/i.exec(request.headers.authorization ?? '') ?? []
  if (token === undefined) return response.set('www-authenticate', 'Bearer').sendStatus(401)
  try {
    request.caller = await verifyToken(token, accepted)
    next()
  } catch (error) {
    if (error instanceof InvalidToken)
      response.set('www-authenticate', 'Bearer error="invalid_token"').sendStatus(401)
    else if (error instanceof InsufficientScope)
      response
        .set(
          'www-authenticate',
          `Bearer error="insufficient_scope", scope="${accepted.scopes.join(' ')}"`,
        )
        .sendStatus(403)
    else response.set('retry-after', '1').sendStatus(503)
  }
}

/** Deliveries that were processed. A real receiver stores the id in the transaction of the effect. */
const seen = new Set()
const app = express().disable('x-powered-by')

app.get('/me', authenticated, ({ caller }, response) => {
  response.json({ subject: caller.subject, subject_type: caller.subjectType })
})

// The signature is of the bytes, so the body must not be parsed before.
app.post(
  '/webhooks',
  express.raw({ type: 'application/json', limit: '1mb' }),
  (request, response) => {
    try {
      const { headers, body } = request
      const delivery = verifyWebhook({ headers, body, secret: WEBHOOK_SECRET })
      if (!seen.has(delivery.deliveryId)) console.log(`event ${delivery.eventType}`)
      seen.add(delivery.deliveryId)
      response.sendStatus(200)
    } catch (error) {
      if (!(error instanceof InvalidWebhook)) throw error
      response.sendStatus(400)
    }
  },
)

app.listen(Number(PORT), '127.0.0.1', () => console.log(`ready: http://localhost:${PORT}`))
