select id as order_id, customer as customer_id, status, placed_on, cents as amount, cents < 1000 as is_small
from {{ ref('raw_orders') }}
