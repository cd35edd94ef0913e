/* tls_certificates: an authority and a server's certificate for "broker", valid from 2026 for a
 * hundred years, made by
 *
 *     openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=fuzz root"
 *
 * The keys are nobody's. */
#pragma once

/* clang-format off */
static const char tls_ca[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBfjCCASWgAwIBAgIUVdPrp+HrMIgWyd6HsCe5h9ES2FgwCgYIKoZIzj0EAwIw\n"
    "FDESMBAGA1UEAwwJZnV6eiByb290MCAXDTI2MTEzMDAzMDk0NloYDzIxMjYxMTA2\n"
    "MDMwOTQ2WjAUMRIwEAYDVQQDDAlmdXp6IHJvb3QwWTATBgcqhkjOPQIBBggqhkjO\n"
    "PQMBBwNCAARRYZ3TrVCsXLHmwGKGZFN2rpe92qfkkb7JiXSlC/k97ST0WJi15mCA\n"
    "d8kRubQF03CORcJyrsvxMK4eQarTJXvho1MwUTAdBgNVHQ4EFgQUuFsFj9SIyPFY\n"
    "a716hnCCiK49JMgwHwYDVR0jBBgwFoAUuFsFj9SIyPFYa716hnCCiK49JMgwDwYD\n"
    "VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAtYSHuIE/xUlboGHOg5wbX\n"
    "qiATai6Nq5njr09viSbFVQIgVAVBwf32V0f6wqOsm2McQpwCnPAX0aQzoVmVv/sf\n"
    "108=\n"
    "-----END CERTIFICATE-----\n";

static const char tls_certificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBfTCCASSgAwIBAgIUaUlVGh1UrL3QZMnDxCbbxFVRPDQwCgYIKoZIzj0EAwIw\n"
    "FDESMBAGA1UEAwwJZnV6eiByb290MCAXDTI2MTEzMDAzMDk0NloYDzIxMjYxMTA2\n"
    "MDMwOTQ2WjARMQ8wDQYDVQQDDAZicm9rZXIwWTATBgcqhkjOPQIBBggqhkjOPQMB\n"
    "BwNCAATv3mfuT+ZubA5fxfl155MfR5P1bixYWjpdZV2nNjXXWO7oElDtyCmUcz/H\n"
    "o2cnATklNCIb1Nr5dNmBVYKVFZpCo1UwUzARBgNVHREECjAIggZicm9rZXIwHQYD\n"
    "VR0OBBYEFOAYDvmPw3QmEjArssTwOzP2hI/qMB8GA1UdIwQYMBaAFLhbBY/UiMjx\n"
    "WGu9eoZwgoiuPSTIMAoGCCqGSM49BAMCA0cAMEQCIAqHoEBCCR7f5PfJudzUyKa0\n"
    "NjmrK2sEP2Uu4YvANLFRAiB7Srw4Eol+hAwzUtMDZTcqLGWw6cXp1675GSEXuwHX\n"
    "Ig==\n"
    "-----END CERTIFICATE-----\n";

static const char tls_key[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgIoJ1YT+pZbf0NlkU\n"
    "pxbcDsBSpmBtGIA/ysSo39gbjA2hRANCAATv3mfuT+ZubA5fxfl155MfR5P1bixY\n"
    "WjpdZV2nNjXXWO7oElDtyCmUcz/Ho2cnATklNCIb1Nr5dNmBVYKVFZpC\n"
    "-----END PRIVATE KEY-----\n";
/* clang-format on */
