import test from 'ava'
import { browserName } from '../../../gateway/pages/platform/user-agent.js'

const MOZILLA = 'Mozilla/5.0'
for (const [userAgent, name] of [
  [`${MOZILLA} (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0`, 'Firefox, Linux'],
  [
    `${MOZILLA} (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/150.0.0.0 Safari/537.36 Edg/150.0.0.0`,
    'Edge, Windows',
  ],
  [
    `${MOZILLA} (Linux; Android 16) AppleWebKit/537.36 Chrome/150.0.0.0 Mobile Safari/537.36`,
    'Chrome, Android',
  ],
  [
    `${MOZILLA} (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile Safari/604.1`,
    'Safari, iOS',
  ],
  ['curl/8.0', 'curl/8.0'],
  ['', ''],
] as const) {
  test(`${userAgent === '' ? 'nothing' : userAgent} is ${name === '' ? 'nothing' : name}`, (t) => {
    t.is(browserName(userAgent), name)
  })
}
