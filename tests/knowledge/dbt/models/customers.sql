{{ config(materialized='table', alias='clients') }}
select id as customer_id, town, segment from {{ ref('raw_customers') }}
