/** Problem types in German. */
import type { ProblemTexts } from '../problem-advice.js'

export const de: ProblemTexts = {
  words: {
    status: 'Status {status}, Fehlercode',
    cause: 'Ursache',
    remedy: 'Was Sie tun können',
    retry: 'Wiederholung',
    all: 'Alle Fehlertypen',
    intro:
      'Fehler dieses Dienstes sind Problemdokumente (RFC 9457). Das Feld `type` enthält die Adresse einer dieser Seiten.',
  },
  retry: {
    changed:
      'Senden Sie dieselbe Anfrage nicht noch einmal, sie schlägt wieder fehl. Senden Sie eine korrigierte Anfrage.',
    token: 'Wiederholen Sie die Anfrage einmal mit einem anderen Token.',
    never: 'Wiederholen Sie die Anfrage nicht.',
    same: 'Wiederholen Sie dieselbe Anfrage. Schreibende Anfragen nur mit ihrem `idempotency-key`.',
    wait: 'Warten Sie so viele Sekunden, wie in `Retry-After` steht, und wiederholen Sie dann dieselbe Anfrage.',
    backoff:
      'Warten Sie die Zeit in `Retry-After` ab, sonst eine Sekunde, die sich jedes Mal verdoppelt. Wiederholen Sie schreibende Anfragen nur mit ihrem `idempotency-key`.',
  },
  types: {
    'bad-request': [
      'Ungültige Anfrage',
      'Die Anfrage ist fehlerhaft, ein Pflichtfeld fehlt oder ein Wert ist ungültig. Das Feld `errors` nennt jede Stelle als JSON Pointer, sofern der Server sie kennt.',
      'Lesen Sie `errors` und `detail` und vergleichen Sie die Anfrage mit ihrer Operation in `/openapi.json`.',
    ],
    unauthorized: [
      'Nicht authentifiziert',
      'Die Anmeldedaten fehlen oder sind ungültig. `WWW-Authenticate` nennt das Verfahren und die Metadaten des Autorisierungsservers.',
      'Senden Sie ein Zugriffstoken dieses Dienstes im Header `Authorization`. `/auth.md` beschreibt, wie Sie eines bekommen.',
    ],
    'token-expired': [
      'Token abgelaufen',
      'Das Zugriffstoken ist abgelaufen.',
      'Verwenden Sie das Refresh-Token oder melden Sie sich neu an.',
    ],
    'token-revoked': [
      'Token widerrufen',
      'Das Zugriffstoken wurde vor seinem Ablauf widerrufen.',
      'Melden Sie sich neu an oder bitten Sie den Benutzer um eine neue Delegation. Verwerfen Sie das alte Token.',
    ],
    'delegation-expired': [
      'Delegation abgelaufen',
      'Die Delegation des Benutzers an den Agenten ist abgelaufen. Eine Erneuerung liefert kein neues Token.',
      'Beginnen Sie eine neue Delegation und fragen Sie den Benutzer.',
    ],
    'payment-required': [
      'Zahlung erforderlich',
      'Die Ressource ist kostenpflichtig. Die Antwort enthält den Preis und die Zahlungsarten.',
      'Zahlen Sie auf einem der Wege in der Antwort und wiederholen Sie die Anfrage mit dem Zahlungsnachweis.',
    ],
    forbidden: [
      'Nicht erlaubt',
      'Der Aufrufer ist authentifiziert, aber nicht berechtigt: Mandant, Rolle oder Art des Tokens lassen es nicht zu.',
      'Verwenden Sie ein Token des richtigen Mandanten oder bitten Sie einen Administrator um die Rolle. `detail` nennt den Grund.',
    ],
    'insufficient-scope': [
      'Berechtigung reicht nicht aus',
      'Dem Token fehlt ein Scope dieser Operation. `WWW-Authenticate` nennt ihn.',
      'Holen Sie ein Token mit dem Scope, den `WWW-Authenticate` nennt.',
    ],
    'policy-denied': [
      'Durch eine Richtlinie abgelehnt',
      'Eine Richtlinie des Mandanten oder der Organisation verbietet die Operation.',
      'Bitten Sie einen Administrator des Mandanten, die Richtlinie zu ändern.',
    ],
    'not-found': [
      'Nicht gefunden',
      'Die Ressource existiert nicht oder gehört zu einem Mandanten, den der Aufrufer nicht sehen kann.',
      'Prüfen Sie Pfad und ID, und ob das Token zum Mandanten des Objekts gehört.',
    ],
    'method-not-allowed': [
      'Methode nicht erlaubt',
      'Die Ressource existiert, unterstützt diese Methode aber nicht. `Allow` nennt ihre Methoden.',
      'Verwenden Sie eine der Methoden im Header `Allow`.',
    ],
    'not-acceptable': [
      'Kein passendes Format',
      'Der Header `Accept` schließt alle Medientypen dieser Operation aus.',
      'Senden Sie `Accept: application/json` oder keinen `Accept`-Header.',
    ],
    'request-timeout': [
      'Zeitüberschreitung der Anfrage',
      'Die Anfrage ist nicht rechtzeitig vollständig angekommen.',
      'Prüfen Sie die Verbindung und senden Sie den Inhalt ohne Pausen.',
    ],
    conflict: [
      'Konflikt',
      'Die Anfrage widerspricht dem aktuellen Zustand, etwa weil ein Schlüssel bereits registriert ist oder die erste Anfrage mit demselben `idempotency-key` noch läuft.',
      'Lesen Sie das Objekt noch einmal und entscheiden Sie anhand seines Zustands. `detail` nennt den Konflikt.',
    ],
    gone: [
      'Nicht mehr verfügbar',
      'Die Ressource gab es, sie ist aber nicht mehr verfügbar.',
      'Beginnen Sie neu: Fordern Sie einen neuen Link, einen neuen Code oder ein neues Objekt an.',
    ],
    'payload-too-large': [
      'Anfrage zu groß',
      'Der Inhalt der Anfrage überschreitet die Grenze dieser Operation.',
      'Senden Sie weniger Daten. `/openapi.json` enthält die Grenzen der Operation.',
    ],
    'uri-too-long': [
      'Adresse zu lang',
      'Das Ziel der Anfrage ist länger als 16 KiB.',
      'Senden Sie lange Werte im Inhalt der Anfrage statt in der Adresse.',
    ],
    'unsupported-media-type': [
      'Medientyp nicht unterstützt',
      'Diese Operation unterstützt den `Content-Type` oder das `Content-Encoding` nicht.',
      'Senden Sie den `Content-Type`, den die Operation in `/openapi.json` nennt, ohne `Content-Encoding`.',
    ],
    'misdirected-request': [
      'Falscher Host',
      'Dieser Dienst bedient den Host der Anfrage nicht.',
      'Verwenden Sie den Host des Issuers oder eines Mandanten. Betreiber: Tragen Sie den Host in `server.allowed_hosts` ein.',
    ],
    'unprocessable-content': [
      'Inhalt nicht verarbeitbar',
      'Die Anfrage ist wohlgeformt, kann aber nicht verarbeitet werden, etwa weil ein `idempotency-key` schon mit anderem Inhalt verwendet wurde.',
      'Verwenden Sie für eine neue Anfrage einen neuen `idempotency-key` oder korrigieren Sie, was `detail` nennt.',
    ],
    'too-early': [
      'Zu früh',
      'Ein gültiger Nachweis kam vor Ablauf seiner Mindestdauer an.',
      'Behalten Sie den Nachweis und senden Sie ihn nach der Mindestdauer.',
    ],
    'rate-limited': [
      'Zu viele Anfragen',
      'Ein Limit ist überschritten. `Retry-After` und `RateLimit` nennen die Wartezeit, `violated-policies` die Namen der Limits.',
      'Senden Sie weniger Anfragen. Der Header `RateLimit` nennt, wie viele übrig sind.',
    ],
    'headers-too-large': [
      'Header zu groß',
      'Die Header-Felder überschreiten die Grenze von 64 Feldern oder 16 KiB.',
      'Senden Sie weniger oder kürzere Header-Felder.',
    ],
    'server-error': [
      'Serverfehler',
      'Ein interner Fehler ist aufgetreten.',
      'Melden Sie dem Betreiber dieses Dienstes die Anfrage-ID (`x-request-id`).',
    ],
    'not-implemented': [
      'Nicht verfügbar',
      'In dieser Installation ist die benötigte Funktion nicht eingerichtet.',
      'Bitten Sie den Betreiber, sie einzurichten. `/api/v1/capabilities` listet auf, was verfügbar ist.',
    ],
    'bad-gateway': [
      'Fehler eines anderen Servers',
      'Ein vorgelagerter Server hat ungültig geantwortet.',
      'Prüfen Sie diesen Server oder versuchen Sie es später noch einmal.',
    ],
    'service-unavailable': [
      'Dienst nicht verfügbar',
      'Der Dienst startet, ist überlastet, oder etwas, das er benötigt, ist nicht erreichbar.',
      'Warten Sie. `/health/ready` zeigt, wann der Dienst bereit ist.',
    ],
    'gateway-timeout': [
      'Zeitüberschreitung',
      'Die Anfrage wurde nicht rechtzeitig fertig und deshalb abgebrochen.',
      'Versuchen Sie es noch einmal. Wenn es wieder geschieht, fordern Sie weniger auf einmal an.',
    ],
    'version-not-supported': [
      'HTTP-Version nicht unterstützt',
      'Die Anfragezeile nennt keine HTTP-Version, die diese Verbindung unterstützt.',
      'Senden Sie HTTP/1.1, oder vereinbaren Sie HTTP/2 beim Aufbau der TLS-Verbindung (ALPN).',
    ],
  },
}
